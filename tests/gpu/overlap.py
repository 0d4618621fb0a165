"""Reads what `nsys stats -r cuda_gpu_trace -f csv` says of a run."""

import csv

UPLOAD = "Host-to-Device"


def find_overlap(text):
    """Nanoseconds of uploads while a kernel runs, and of all uploads."""
    lines = text.splitlines()
    header = next(i for i, line in enumerate(lines) if line.startswith("Start"))
    uploads, kernels = [], []
    for row in csv.DictReader(lines[header:]):
        start = int(row["Start (ns)"])
        interval = start, start + int(row["Duration (ns)"])
        if UPLOAD in row["Name"]:
            uploads.append(interval)
        elif not row["Name"].startswith("["):
            kernels.append(interval)
    kernels = merge(kernels)
    covered = sum(
        max(0, min(end, last) - max(begin, first))
        for begin, end in uploads
        for first, last in kernels
    )
    return covered, sum(end - begin for begin, end in uploads)


def merge(intervals):
    """Without what two have in common."""
    merged = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged
