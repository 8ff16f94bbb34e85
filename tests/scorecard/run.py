"""Runs the published scenarios against Turnkeep and its peers, judges them, and writes docs/scorecard.md with its raw data.

`make scorecard` calls it. `--only ID` and `--gateway NAME` (each any number of times) choose a part, which is then put in the place of
that part of the last whole run; `--out FOLDER` writes elsewhere.
"""

import argparse
import asyncio
import concurrent.futures
import os
import pathlib
import platform
import signal
import subprocess
import sys
import time

import checker
import launch
import play
import report
import scenarios

# How many scenarios of a gateway run at once: they mostly wait.
AT_ONCE = {"turnkeep": 2, "litellm": 3, "portkey": 1, "sdk": 1}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=sorted(scenarios.BY_ID), help="a scenario's id")
    parser.add_argument("--gateway", action="append", choices=list(launch.GATEWAYS), help="a gateway's name")
    parser.add_argument("--dialect", action="append", choices=list(launch.KINDS), help="a dialect")
    parser.add_argument("--page", action="store_true", help="run nothing: write the page anew from its raw data")
    parser.add_argument("--out", type=pathlib.Path, default=launch.ROOT / "docs", help="the folder of scorecard.md (docs)")
    return parser.parse_args()


async def one(gateway, dialect, scenario, lanes, results, progress):
    async with lanes[gateway]:
        load = round(float(open("/proc/loadavg").read().split()[0]), 1)
        try:
            record = await play.play(gateway, dialect, scenario)
        except (AssertionError, OSError, asyncio.TimeoutError, subprocess.SubprocessError, ValueError) as failure:
            # What cannot be run is told as such, and is nobody's pass.
            record = {"trouble": f"could not be run: {type(failure).__name__}: {str(failure)[:300]}"}
        record["load"] = load
        verdict, seen = checker.judge(scenario.id, record)
        after = {name: list(found) for name, found in checker.judge_after(scenario.id, record).items()}
        results.append(report.entry(gateway, dialect, scenario, record, verdict, seen, after))
        progress["done"] += 1
        worse = "".join(f" [{name}: {found[1]}]" for name, found in after.items() if found[0] == checker.FAIL)
        print(f"{progress['done']:3}/{progress['all']} {verdict:4} {gateway} {dialect} {scenario.id}: {seen}{worse}", flush=True)


async def everything(options):
    # Starts, stops and the SDK's pipes each hold a thread: too few would count as a gateway's slowness.
    asyncio.get_running_loop().set_default_executor(concurrent.futures.ThreadPoolExecutor(64))
    gateways = options.gateway or list(launch.GATEWAYS)
    chosen = [scenarios.BY_ID[name] for name in options.only] if options.only else scenarios.ALL
    jobs = [
        (gateway, dialect, scenario)
        for scenario in chosen
        for gateway in gateways
        for dialect in launch.GATEWAYS[gateway]
        if not options.dialect or dialect in options.dialect
    ]
    lanes = {gateway: asyncio.Semaphore(AT_ONCE[gateway]) for gateway in gateways}
    results, progress = [], {"done": 0, "all": len(jobs)}
    # All of them are waited for whatever befalls one, so that an interruption lets each end its own children.
    ends = await asyncio.gather(*(one(*job, lanes, results, progress) for job in jobs), return_exceptions=True)
    for end in ends:
        if isinstance(end, BaseException):
            raise end
    return results


def conditions(gateways):
    def said(*command):
        done = subprocess.run(command, capture_output=True, text=True, cwd=launch.ROOT)
        return done.stdout.strip()

    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": said("git", "rev-parse", "--short", "HEAD"),
        "machine": f"{len(os.sched_getaffinity(0))} cores, {cpu}, {platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        "node": said("node", "--version"),
        "versions": {gateway: launch.version(gateway) for gateway in gateways},
    }


def main():
    options = arguments()
    if options.page:
        report.write(options.out, {}, [], 0, whole=False)
        return
    gateways = options.gateway or list(launch.GATEWAYS)
    for gateway in gateways:
        lacks = launch.missing(gateway)
        if lacks:
            sys.exit(f"scorecard: {lacks} is not there; `make scorecard` builds and installs it")
    # An end by signal is an interruption as by hand, so that every child is ended. A shell's background job has SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    began = time.monotonic()
    try:
        results = asyncio.run(everything(options))
    except KeyboardInterrupt:
        sys.exit("scorecard: interrupted, nothing was written")
    report.write(options.out, conditions(gateways), results, round(time.monotonic() - began), whole=not (options.only or options.dialect))
    failed = sum(entry["verdict"] == checker.FAIL and entry["gateway"] == "turnkeep" for entry in results)
    print(f"{len(results)} results in {round(time.monotonic() - began)} s; Turnkeep fails {failed}; {options.out / 'scorecard.md'}")


if __name__ == "__main__":
    main()
