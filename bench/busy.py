#!/usr/bin/env python3
"""Our rates alone and beside a process that uses a core, taken in turn.

Engines whose threads wait for each other by spinning lose more than the processor time that a neighbour takes. For
each measurement this prints both rates, the processor time that we got in both cases (getrusage, over wall time),
and whether the rate fell no more than in proportion to it, within 15 %. Nothing is pinned. Standard library only.

    bench/busy.py --model /tmp/bench
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

import engines
from engines import Engine, median

MEASUREMENTS = ["pp512", "tg32@16", "tg16@16x8"]
SLACK = 0.15
SPIN = "while True: pass"


def judge(alone, busy):
    """Rates and processor shares (cores) of runs alone and beside the neighbour. `kept`: the part of the rate that is
    left, over the part of the processor time that is left; 1 is proportion, less is a loss beyond it."""
    rate = [median([r["tokens_per_second"] for r in runs]) for runs in (alone, busy)]
    cores = [median([r["processor_seconds"] / r["seconds"] for r in runs]) for runs in (alone, busy)]
    kept = (rate[1] / rate[0]) / (cores[1] / cores[0])
    return {"rate_alone": rate[0], "rate_busy": rate[1], "cores_alone": cores[0], "cores_busy": cores[1],
            "kept": kept, "in_proportion": kept >= 1 - SLACK}


def measure_busy(engine, name):
    """One run beside a process that never rests."""
    neighbour = subprocess.Popen([sys.executable, "-c", SPIN])
    try:
        time.sleep(0.3)  # until it runs
        return engine.ask(name)
    finally:
        neighbour.kill()
        neighbour.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", help="a model folder (default: the default model)")
    parser.add_argument("--triax", help="the binary (default: what ./triax builds)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--measurements", default=",".join(MEASUREMENTS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=pathlib.Path, help="every figure as JSON")
    options = parser.parse_args()
    triax = engines.triax_binary(options.triax)
    names = options.measurements.split(",")
    runs = {name: ([], []) for name in names}
    with Engine("triax", engines.triax_command(triax, options.model, options.threads)) as engine:
        for _ in range(options.repeats):
            for name in names:
                runs[name][0].append(engine.ask(name))
                runs[name][1].append(measure_busy(engine, name))
    verdicts = {name: judge(*both) for name, both in runs.items()}
    print("| measurement | alone, tokens/s | cores | beside one process | cores | rate left over time left | |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, v in verdicts.items():
        print(f"| {name} | {v['rate_alone']:.1f} | {v['cores_alone']:.2f} | {v['rate_busy']:.1f} | "
              f"{v['cores_busy']:.2f} | {v['kept']:.2f} | "
              f"{'in proportion' if v['in_proportion'] else '**falls further**'} |")
    if options.out:
        options.out.write_text(json.dumps({"machine": engines.machine(), "triax": engines.triax_version(triax),
                                           "threads": options.threads, "verdicts": verdicts, "runs": runs}, indent=1))
    return 0 if all(v["in_proportion"] for v in verdicts.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
