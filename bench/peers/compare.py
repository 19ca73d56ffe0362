#!/usr/bin/env python3
"""triax against llama.cpp on the same random weights, measured alternately.

Makes what it needs in a scratch folder (npm, g++ and numpy must be there), checks that both engines compute the
same, then measures each in turn: prompts of 512 and 2048, decoding at depths 16 and 2048, 4 and 8 sequences at
once. Prints a Markdown table of medians and ratios and writes every figure as JSON.

    bench/peers/compare.py --work /tmp/triax-peers
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import engines  # noqa: E402
import prepare  # noqa: E402
from engines import Engine, EngineFailed, median  # noqa: E402
from prepare import say  # noqa: E402

MEASUREMENTS = ["pp512", "pp2048", "tg128@16", "tg64@2048", "tg64@16x4", "tg64@16x8"]
PROBES = ["pp512", "tg32@16", "tg16@16x8"]  # to choose the peer's backend by
# The least ratio that is asked for, with two threads.
DEMANDS = {"bf16": {"pp512": 4.0, "pp2048": 4.0, "tg128@16": 1.45, "tg64@2048": 1.6, "tg64@16x4": 2.0,
                    "tg64@16x8": 3.0},
           "int8": {"pp512": 4.0, "tg128@16": 2.0}}
PEER_FORMAT = {"bf16": "bf16", "int8": "q8_0"}
LARGEST_ERROR = 1e-3


def check_numbers(work, triax, driver, folder):
    """The relative error of our float32 logits against the peer's, on the tiny shape with float32 weights."""
    ids = [(17 * i * i + 5 * i + 1) % prepare.VOCABULARY["tiny"] for i in range(32)]
    file, theirs, ours = work / "ids.txt", work / "peer-logits.f32", work / "our-logits.npy"
    file.write_text(" ".join(map(str, ids)))
    subprocess.run([driver, "--bins", folder, "--model", prepare.gguf(work, "tiny", "f32"), "--threads", "2",
                    "--vocab", str(prepare.VOCABULARY["tiny"]), "--logits", file, "--out", theirs], check=True)
    subprocess.run([triax, "logits", "-m", prepare.folder_of(work, "tiny", triax), "--ids", file, "--out", ours,
                    "--precision", "f32"], check=True, stdout=subprocess.DEVNULL)
    a = np.load(ours).astype(np.float64)
    b = np.fromfile(theirs, dtype=np.float32).reshape(a.shape).astype(np.float64)
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


class Peer:
    """How to start llama.cpp with a format, on a choice of backends."""

    def __init__(self, work, driver, folder):
        self.work, self.driver = work, driver
        self.backends = prepare.backends(work, folder)

    def start(self, flavour, threads, backend):
        return Engine(f"llama.cpp {flavour}", [
            self.driver, "--bins", self.backends[backend], "--model", prepare.gguf(self.work, "bench", flavour),
            "--vocab", prepare.VOCABULARY["bench"], "--threads", threads])

    def best(self, flavour, threads):
        """The backend with the best rates, and what was seen of each. Its geometric mean over the probes counts."""
        seen, scores = {}, {}
        for backend in self.backends:
            try:
                with self.start(flavour, threads, backend) as engine:
                    seen[backend] = {name: engine.ask(name)["tokens_per_second"] for name in PROBES}
                scores[backend] = math.prod(seen[backend].values()) ** (1 / len(PROBES))
            except EngineFailed as failed:
                seen[backend] = str(failed)
            say(f"  llama.cpp {flavour}, {backend}: {seen[backend]}")
        if not scores:
            raise EngineFailed(f"llama.cpp runs {flavour} on none of its backends: {seen}")
        return max(scores, key=scores.get), seen


def machine_limits(triax, tiny, threads, wanted):
    """This machine's limits, in a process of its own: their large buffer is nobody's peak memory."""
    if not wanted:
        return {}
    with Engine("triax", engines.triax_command(triax, tiny, threads)) as engine:
        return engine.ask("limits")


def measure_alternately(ours, theirs, names, repeats):
    """Runs by measurement and engine; who begins changes from run to run."""
    out = {name: {"ours": [], "theirs": [], "load": []} for name in names}
    for run in range(repeats):
        for number, name in enumerate(names):
            order = [("ours", ours), ("theirs", theirs)]
            if (run + number) % 2:
                order.reverse()
            for who, engine in order:
                out[name]["load"].append(os.getloadavg()[0])
                out[name][who].append(engine.ask(name))
            a, b = (out[name][who][-1]["tokens_per_second"] for who in ("ours", "theirs"))
            say(f"  {run + 1}/{repeats} {name}: {a:.1f} against {b:.1f} tokens/s")
    return out


def compare(setting, triax, model, peer, options):
    """One trunk format with one number of threads."""
    trunk, threads = setting
    say(f"trunk {trunk}, {threads} threads")
    backend, seen = options.backend, {}
    if not backend:
        backend, seen = peer.best(PEER_FORMAT[trunk], threads)
    more = ["--trunk", "int8"] if trunk == "int8" else []
    tiny = prepare.folder_of(options.work, "tiny", triax)
    limits = [machine_limits(triax, tiny, threads, options.limits)]
    with Engine("triax", engines.triax_command(triax, model, threads, *more)) as ours, \
            peer.start(PEER_FORMAT[trunk], threads, backend) as theirs:
        runs = measure_alternately(ours, theirs, options.measurements, options.repeats)
        limits.append(machine_limits(triax, tiny, threads, options.limits))
        return {"trunk": trunk, "threads": threads, "peer_format": PEER_FORMAT[trunk], "peer_backend": backend,
                "peer_probes": seen, "runs": runs, "limits": limits,
                "start": {who: {"first_token_seconds": engine.first_token_seconds,
                                "load_seconds": engine.ready["load_seconds"], "memory": engine.ask("memory")}
                          for who, engine in (("ours", ours), ("theirs", theirs))},
                "isa": ours.ready["isa"], "peer_system": theirs.ready["system"]}


def rate(runs, who):
    return median([run["tokens_per_second"] for run in runs[who]])


def table(result):
    """Rows of Markdown for one setting."""
    trunk, threads = result["trunk"], result["threads"]
    for name, runs in result["runs"].items():
        ours, theirs = rate(runs, "ours"), rate(runs, "theirs")
        demand = DEMANDS[trunk].get(name) if threads == 2 else None
        asked = "" if demand is None else f"{demand:.2f} {'met' if ours / theirs >= demand else '**below**'}"
        yield (f"| {trunk} | {threads} | {name} | {ours:.1f} | {theirs:.1f} | {ours / theirs:.2f} | {asked} | "
               f"{max(runs['load']):.1f} |")


def report(record):
    m = record["machine"]
    print(f"{m['processor']}, {m['cores']} cores, {m['memory_bytes'] / 1e9:.0f} GB; {m['date']}; "
          f"{record['triax']}; llama.cpp {record['peer']}; medians of {record['repeats']}\n")
    print(f"Both compute the same: float32 logits of the tiny shape differ by {record['relative_error']:.1e} "
          "(relative, Frobenius).\n")
    print("| trunk | threads | measurement | triax tokens/s | llama.cpp tokens/s | ratio | asked | load |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for result in record["results"]:
        print("\n".join(table(result)))
    print("\n| trunk | threads | engine | first prompt token after | peak memory | backend |")
    print("| --- | --- | --- | --- | --- | --- |")
    for result in record["results"]:
        for who, name, backend in (("ours", "triax", result["isa"]),
                                   ("theirs", "llama.cpp " + result["peer_format"], result["peer_backend"])):
            start = result["start"][who]
            print(f"| {result['trunk']} | {result['threads']} | {name} | {start['first_token_seconds']:.2f} s | "
                  f"{start['memory']['peak_bytes'] / 1e6:,.0f} MB | {backend} |")
    for result in record["results"]:
        for limits in result["limits"]:
            if limits.get("read_bytes_per_second"):
                print(f"\n{result['trunk']}, {result['threads']} threads: reads "
                      f"{limits['read_bytes_per_second'] / 1e9:.1f} GB/s, multiply-adds "
                      f"{limits['operations_per_second'] / 1e9:.0f} GFLOP/s ({limits['instruction']})")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("/tmp/triax-peers"),
                        help="scratch folder, about 10 GB; what is there is used again (default /tmp/triax-peers)")
    parser.add_argument("--triax", help="the binary (default: what ./triax builds)")
    parser.add_argument("--model", help="a folder made by `triax synth --config bench` (default: made)")
    parser.add_argument("--trunks", default="bf16,int8", help="default bf16,int8")
    parser.add_argument("--threads", default="2,1", help="default 2,1")
    parser.add_argument("--measurements", default=",".join(MEASUREMENTS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path, help="the JSON (default WORK/compare.json)")
    parser.add_argument("--backend", choices=["own choice", "without AMX"],
                        help="llama.cpp's backends (default: both are tried for each format, the faster one counts)")
    parser.add_argument("--no-limits", dest="limits", action="store_false", help="leave the machine's limits out")
    options = parser.parse_args()
    options.measurements = options.measurements.split(",")
    return options


def main():
    options = parse()
    work = options.work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    triax = engines.triax_binary(options.triax)
    folder = prepare.libraries(work)
    driver = prepare.driver(work, folder)
    error = check_numbers(work, triax, driver, folder)
    say(f"float32 logits differ by {error:.2e} (relative)")
    if not error < LARGEST_ERROR:
        sys.exit(f"the engines do not compute the same: relative error {error:.2e}, at most {LARGEST_ERROR}")
    trunks = options.trunks.split(",")
    if "int8" in trunks and not engines.has_option(triax, "--trunk"):
        say("this triax has no --trunk: int8 is left out")
        trunks.remove("int8")
    model = pathlib.Path(options.model) if options.model else prepare.folder_of(work, "bench", triax)
    engines.warm_page_cache([prepare.gguf(work, "bench", PEER_FORMAT[t]) for t in trunks])
    cached = engines.read_into_huge_pages(triax, model)
    say(f"{cached['huge_bytes'] / max(cached['bytes'], 1):.0%} of the model's files lie in huge pages of the page cache")
    peer = Peer(work, driver, folder)
    record = {"machine": engines.machine(), "triax": engines.triax_version(triax),
              "peer": f"v0.5.0 ({prepare.PACKAGE} {prepare.VERSION})", "repeats": options.repeats,
              "weight_bytes": sum(f.stat().st_size for f in model.glob("*.safetensors")),
              "relative_error": error, "page_cache": cached, "results": []}
    out = options.out or work / "compare.json"
    for trunk in trunks:
        for threads in map(int, options.threads.split(",")):
            record["results"].append(compare((trunk, threads), triax, model, peer, options))
            out.write_text(json.dumps(record, indent=1))
    report(record)
    say(f"every figure: {out}")


if __name__ == "__main__":
    try:
        main()
    except EngineFailed as failed:
        sys.exit(str(failed))
