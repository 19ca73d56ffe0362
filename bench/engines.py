"""Engines that answer measurements by name: `triax bench --serve` and the driver of bench/peers.

An engine reads a name ("pp512", "tg128@16", "memory") from its standard input and answers with one line
of JSON. Standard library only."""
import json
import os
import pathlib
import platform
import select
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


class EngineFailed(Exception):
    """The process ended, or did not answer in time; the text says which and its last words."""


class Engine:
    """A running engine. `first_token_seconds`: from the start of the process to the logits of a prompt of one
    token. Use as a context manager, or call close()."""

    def __init__(self, name, command, timeout=1800):
        self.name = name
        self.timeout = timeout
        self.errors = tempfile.TemporaryFile()
        start = time.monotonic()
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors)
        self.pending = b""
        try:
            self.ready = self.answer()
            self.ask("pp1")
            self.first_token_seconds = time.monotonic() - start
            self.ask("warm")
        except EngineFailed:
            self.process.kill()
            self.close()
            raise

    def ask(self, name):
        """One measurement: the engine's JSON as a dict."""
        try:
            self.process.stdin.write(name.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise EngineFailed(self.last_words()) from None
        out = self.answer()
        if "error" in out:
            raise EngineFailed(f"{self.name}: {out['error']}")
        return out

    def answer(self):
        """The next line that is a JSON object; a crashing engine's debugger writes others."""
        deadline = time.monotonic() + self.timeout
        while True:
            line = self.line(deadline)
            if line.startswith(b"{"):
                return json.loads(line)

    def line(self, deadline):
        while b"\n" not in self.pending:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise EngineFailed(f"{self.name}: no answer in {self.timeout} s")
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            if not piece:
                raise EngineFailed(self.last_words())
            self.pending += piece
        line, self.pending = self.pending.split(b"\n", 1)
        return line

    def last_words(self):
        code = self.process.wait()
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        said = next((line for line in lines if "ASSERT" in line or "rror" in line), lines[-1] if lines else "")
        return f"{self.name}: ended with code {code}: {said[:200]}"

    def close(self):
        if self.process.stdin and not self.process.stdin.closed:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def triax_binary(given=None):
    """The binary: the one given, or the one that ./triax makes (building it when sources changed)."""
    if given:
        return pathlib.Path(given).resolve()
    subprocess.run([ROOT / "triax", "--version"], check=True, stdout=subprocess.DEVNULL)
    return ROOT / "build/run/triax"


def triax_command(binary, model, threads, *more):
    command = [binary, "bench", "--serve", "--threads", threads, *more]
    return command + (["-m", model] if model else [])


def has_option(binary, option):
    """Does `triax bench` know it?"""
    return option in subprocess.run([binary, "bench", "--help"], capture_output=True, text=True).stdout


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def machine():
    """What a reader of figures wants to know of the machine."""
    model = "unknown"
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            model = line.split(": ", 1)[1].strip()
            break
    total = next(int(line.split()[1]) * 1024 for line in open("/proc/meminfo") if line.startswith("MemTotal"))
    return {"processor": model, "cores": len(os.sched_getaffinity(0)), "memory_bytes": total,
            "kernel": platform.release(), "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())}


def triax_version(binary):
    version = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return version + (f" ({commit.stdout.strip()})" if commit.returncode == 0 else "")


def read_into_huge_pages(binary, model):
    """Warms the page cache with a model's files as `triax doctor --huge-pages` does; how they lie, in bytes."""
    command = [binary, "doctor", "--huge-pages", "--json", "-m", model]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def warm_page_cache(paths):
    """Reads files once, so that no engine pays for a cold disk."""
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            while file.read(1 << 24):
                pass
