#!/usr/bin/env python3
"""Writes the rows of Parquet or Arrow files as WebDataset shards: import-parquet.py FILE... -o FOLDER

  -o FOLDER          where shard-000000.tar and so on are written
  --columns A,B      only these columns
  --rows N           rows of a shard, 10000

A sample has a field for each column: images and other bytes as they are (also {bytes, path} as
Hugging Face's datasets has them), with the ending of their format; numbers, texts and lists of them
as text. What tcc-run then reads is webdataset:FOLDER/shard-{000000..N}.tar, which is printed. Needs
pyarrow: tools/setup --tables.
"""

import argparse
import io
import json
import os
import sys
import tarfile

import pyarrow as pa
import pyarrow.dataset

ENDINGS = {b"\xff\xd8\xff": "jpg", b"\x89PNG": "png", b"RIFF": "webp"}


def open_data(paths):
    form = "parquet" if paths[0].endswith(".parquet") else "ipc"
    return pyarrow.dataset.dataset(paths, format=form)


def ending_of(data):
    for magic, ending in ENDINGS.items():
        if data.startswith(magic):
            return ending
    return None


def encode(name, value):
    """The field's name and bytes; nothing for a null."""
    if isinstance(value, dict) and "bytes" in value:
        value = value["bytes"]
    if value is None:
        return None
    if isinstance(value, bytes):
        ending = ending_of(value)
        return (f"{name}.{ending}" if ending else name), value
    if isinstance(value, bool):
        value = int(value)
    return name, (value if isinstance(value, str) else json.dumps(value)).encode()


def read_rows(data, columns):
    for batch in data.to_batches(columns=columns):
        yield from batch.to_pylist()


def write_shards(data, columns, folder, in_shard):
    """How many."""
    os.makedirs(folder, exist_ok=True)
    shard = None
    count = 0
    for number, row in enumerate(read_rows(data, columns)):
        if number % in_shard == 0:
            if shard:
                shard.close()
            path = os.path.join(folder, f"shard-{count:06}.tar")
            shard = tarfile.open(path, "w", format=tarfile.USTAR_FORMAT)
            count += 1
        for name, value in row.items():
            field = encode(name, value)
            if field:
                member = tarfile.TarInfo(f"{number:09}.{field[0]}")
                member.size = len(field[1])
                shard.addfile(member, io.BytesIO(field[1]))
    if shard:
        shard.close()
    return count


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--columns")
    parser.add_argument("--rows", type=int, default=10000)
    options = parser.parse_args()
    columns = options.columns.split(",") if options.columns else None
    try:
        data = open_data(options.files)
        if columns and (missing := set(columns) - set(data.schema.names)):
            sys.exit(f"import-parquet: there is no column '{missing.pop()}', there are "
                     + ", ".join(data.schema.names))  # fmt: skip
        count = write_shards(data, columns, options.output, options.rows)
    except (pa.ArrowException, OSError) as error:
        sys.exit(f"import-parquet: {error}")
    if count == 0:
        sys.exit("import-parquet: there is no row")
    print(f"webdataset:{options.output}/shard-{{000000..{count - 1:06}}}.tar")


if __name__ == "__main__":
    main()
