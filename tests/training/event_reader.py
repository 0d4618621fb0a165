"""Reads TensorBoard's event files strictly, by the schema of event.proto."""

import collections
import os
import struct
import subprocess
import tempfile

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, unknown_fields

CLASSES = {"scalars": 1, "text": 2, "histograms": 2}


class Damage(Exception):
    """What is wrong in a file."""


def make_event_class():
    schema = os.path.join(os.path.dirname(os.path.abspath(__file__)), "event.proto")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["protoc", f"--proto_path={os.path.dirname(schema)}",
                        f"--descriptor_set_out={folder}/schema", schema], check=True)  # fmt: skip
        with open(f"{folder}/schema", "rb") as file:
            files = descriptor_pb2.FileDescriptorSet.FromString(file.read())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(files.file[0])
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Event"))


def make_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


EVENT, TABLE = make_event_class(), make_table()


def masked_sum(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def expect(ok, what):
    if not ok:
        raise Damage(what)


def check_known(message):
    expect(not len(unknown_fields.UnknownFieldSet(message)), f"unknown fields: {message}")
    for field, value in message.ListFields():
        if field.message_type:
            for part in value if field.is_repeated else [value]:
                check_known(part)


def read_records(data):
    """Messages, and the bytes of a torn record behind them."""
    messages, at = [], 0
    while len(data) - at >= 12:
        length, crc = struct.unpack_from("<QI", data, at)
        expect(crc == masked_sum(data[at : at + 8]), f"sum of the length at {at}")
        if len(data) - at < length + 16:
            break
        message = data[at + 12 : at + 12 + length]
        (crc,) = struct.unpack_from("<I", data, at + 12 + length)
        expect(crc == masked_sum(message), f"sum of the message at {at}")
        messages.append(message)
        at += length + 16
    return messages, len(data) - at


def read_tensor(value):
    tensor, plugin = value.tensor, value.metadata.plugin.name
    expect(value.metadata.data_class == CLASSES.get(plugin), f"{value.tag} is of {plugin}")
    expect(tensor.HasField("shape"), f"{value.tag} has no shape")
    shape = [dim.size for dim in tensor.shape.dim]
    if plugin == "histograms":
        expect(tensor.dtype == 2 and len(shape) == 2 and shape[1] == 3, f"{value.tag}: {shape}")
        return np.array(tensor.double_val).reshape(shape)
    expect(not shape, f"{value.tag}: {shape}")
    expect(tensor.dtype == (1 if plugin == "scalars" else 7), f"{value.tag}: {tensor.dtype}")
    (found,) = tensor.float_val if plugin == "scalars" else tensor.string_val
    return found if plugin == "scalars" else found.decode()


class Run:
    """What the event files of a folder say in the end: values by tag and step."""

    def __init__(self, folder):
        self.values = collections.defaultdict(dict)
        self.torn = 0  # bytes at the ends of files
        self.updates = []  # as they were written
        self.names = sorted(os.listdir(folder))
        for name in self.names:
            expect(name.startswith("events.out.tfevents."), name)
            with open(f"{folder}/{name}", "rb") as file:
                self.read(file.read())

    def read(self, data):
        messages, torn = read_records(data)
        self.torn += torn
        for number, message in enumerate(messages):
            event = EVENT.FromString(message)
            check_known(event)
            expect(event.wall_time > 1.7e9, f"time {event.wall_time}")
            expect((event.file_version == "brain.Event:2") == (number == 0), str(event))
            expect((event.session_log.status == 1) or number != 1, str(event))
            self.add(event)

    def add(self, event):
        if event.HasField("session_log"):
            for values in self.values.values():
                for step in [step for step in values if step >= event.step]:
                    del values[step]
        for value in event.summary.value:
            values = self.values[value.tag]
            expect(event.step not in values, f"{value.tag} has step {event.step} twice")
            values[event.step] = read_tensor(value)
            if value.tag == "train/loss":
                self.updates.append(event.step)
