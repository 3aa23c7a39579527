"""What came of the soak: the account of all frames, availability, the faults, memory; as a table and as JSON."""

from soaking import checks


def availability(box, begun_at, ended_at):
    """The part of the time in which weir took data, and what took the rest."""
    up = sum(min(run.ended_at, ended_at) - run.running_at for run in box.runs if run.running_at and run.running_at < ended_at)
    span = ended_at - begun_at
    return {"seconds": round(span, 1), "taking_data_s": round(up, 2), "share": round(up / span, 5), "planned_s": round(box.planned_s, 2),
            "share_without_planned": round(up / max(span - box.planned_s, 1e-9), 5),
            "recoveries_s": [round(took, 2) for took in box.recoveries]}


def frames(box):
    """Where every frame is that left the sender. What no report covers is what the kernel counted at weir's interface meanwhile."""
    left, arrived = box.left(), box.arrived()
    reported, refused, died, idle, at = 0, 0, 0, 0, 0
    boundary = 0
    for run in box.runs:
        idle += run.arrived_at_start - at
        at = run.arrived_at_end
        report = run.report()
        if report is None:
            died += run.arrived_at_end - run.arrived_at_start
            continue
        taken = checks.taken(report)
        reported += taken
        refused += checks.refused(report)
        boundary += run.arrived_at_end - run.arrived_at_start - taken
    idle += arrived - at
    kept_back = sum(session.report["packets"]["sent"] - session.on_the_way for session in box.sender.sessions
                    if session.report and session.may_fail)
    return {"did_not_leave_with_the_cable_out": kept_back, "refused_by_an_interface_going_down_or_up": refused, "left_the_sender": left, "arrived": arrived, "lost_between": left - arrived,
            "in_runs_with_a_report": reported, "in_runs_that_were_killed": died, "while_no_weir_ran": idle, "while_one_started_or_ended": boundary}


def events(box):
    counted = {"complete": 0, "incomplete": 0, "refused": 0, "dropped": 0, "written": 0}
    for run in box.runs:
        report = run.report()
        if report:
            found = report["events"]
            counted["complete"] += found["complete"]
            counted["written"] += found["written"]
            for name in ("incomplete", "refused", "dropped"):
                counted[name] += sum(found[name].values())
    counted["in_runs_that_were_killed"] = sum(getattr(run, "events", 0) for run in box.runs if run.report() is None)
    return counted


def sent(box):
    """By the sender's own reports; a killed session has none."""
    names = ("generated", "dropped", "duplicated", "truncated", "sent")
    counted = {name: 0 for name in names}
    for session in box.sender.sessions:
        if session.report:
            for name in names:
                counted[name] += session.report["packets"][name]
    counted["sessions"] = len(box.sender.sessions)
    counted["sessions_without_report"] = sum(session.report is None for session in box.sender.sessions)
    return counted


def check_frames(found, box):
    """What must hold of all frames together."""
    wrong = []
    per_second = max(run.packets_per_s for run in box.runs)
    if found["lost_between"] and not any("cable" in run.faults for run in box.runs):
        wrong.append(f"{found['lost_between']} frames were lost between the interfaces, and the cable was never out")
    most = len(box.runs) * 4 * per_second  # starting and ending takes up to four seconds on a busy machine
    if not 0 <= found["while_one_started_or_ended"] <= most:
        wrong.append(f"{found['while_one_started_or_ended']} frames came while a run started or ended; at most {most:.0f} can have")
    return wrong


def check_sessions(box):
    """What a sender says that it sent has left its interface."""
    wrong = []
    for number, session in enumerate(box.sender.sessions):
        if session.report and not session.may_fail and session.report["packets"]["sent"] != session.on_the_way:
            wrong.append(f"session {number} says that it sent {session.report['packets']['sent']} frames, {session.on_the_way} left")
    return wrong


def table(result):
    lines = ["", f"{'at':>8}  {'fault':<40} {'':<3} outcome"]
    for fault in result["faults"]:
        lines.append(f"{fault['at_s']:8.1f}  {fault['fault']:<40} {'ok ' if fault['held'] else 'BAD'} {fault['outcome']}")
    kinds = {}
    for fault in result["faults"]:
        kinds.setdefault(fault["fault"], []).append(fault["held"])
    lines += ["", f"{'times':>8}  {'held':>4}  fault"]
    lines += [f"{len(held):8}  {sum(held):4}  {kind}" for kind, held in sorted(kinds.items())]
    available, found, memory = result["availability"], result["frames"], result["memory"]
    lines += ["", f"availability   {100 * available['share']:.2f} % of {available['seconds']:.0f} s, "
              f"{100 * available['share_without_planned']:.2f} % without runs that were ended by hand"]
    if available["recoveries_s"]:
        lines.append(f"recovery       {len(available['recoveries_s'])} times, {min(available['recoveries_s']):.1f} to "
                     f"{max(available['recoveries_s']):.1f} s from the end to taking data")
    lines += [f"frames         {found['left_the_sender']} left the sender "
              f"({found['did_not_leave_with_the_cable_out']} more did not, the cable was out; weir's interface, going down or up, refused "
              f"{found['refused_by_an_interface_going_down_or_up']}), "
              f"{found['lost_between']} were lost before weir, {found['arrived']} arrived:",
              f"               {found['in_runs_with_a_report']} are in balanced reports, "
              f"{found['in_runs_that_were_killed']} came to runs that were killed,",
              f"               {found['while_no_weir_ran']} while none ran, {found['while_one_started_or_ended']} while one started or ended",
              f"runs           {result['runs']['number']}, of which {result['runs']['with_report']} ended in order; "
              f"{result['runs']['events_verified']} events read back and right",
              f"processor      {100 * result['cpu_share']:.1f} % of one core, all in all"]
    if "grown_kib" in memory:
        lines.append(f"memory         {memory['rss_kib'] / 1024:.1f} MiB, grown by {memory['grown_kib']:.0f} KiB in {memory['watched_s']:.0f} s of "
                     f"the last run ({memory['bound_kib']} allowed)")
    return "\n".join(lines)


def closing(result):
    if not result["problems"]:
        early = ", though it was ended early" if result["interrupted"] else ""
        return f"\nAll held{early}: {len(result['faults'])} faults, and every frame, event and byte is accounted for."
    lines = ["", f"{len(result['problems'])} thing(s) did not hold:"]
    for what, look_at in ((problem["what"], problem["look_at"]) for problem in result["problems"]):
        lines.append(f"  - {what}" + (f"\n    look at {look_at}" if look_at else ""))
    return "\n".join(lines)


def last_run_memory(box, leave_out_s, bound_kib):
    runs = [run for run in box.runs if run.memory]
    return checks.memory(runs[-1], leave_out_s, bound_kib) if runs else ({}, ["no run was ever measured"])
