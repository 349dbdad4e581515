"""Writes a small archive with every record that becomes an event, and prints the calls of any
archive by a slow and obvious method, with the Python package of OTF2.

    archive.py write FOLDER      makes FOLDER with traces.otf2
    archive.py absent FOLDER     one with a communicator that names a rank that does not exist
    archive.py users FOLDER      one without MPI
    archive.py large FOLDER N    the same with 16 ranks that each make N calls and more
    archive.py calls ANCHOR      prints rank, start, duration and call of every MPI call
"""

import sys

import _otf2
import otf2
from otf2.enums import (
    CartPeriodicity,
    CollectiveOp,
    GroupType,
    LocationGroupType,
    LocationType,
    Paradigm,
    RegionRole,
)

OFFSET = 1_000
TICKS = 4_000_000_000


class Rank:
    """One location, with a clock that moves by itself."""

    def __init__(self, trace, writer, regions):
        self.trace, self.writer, self.regions = trace, writer, regions
        self.time, self.request = OFFSET, 0

    def now(self):
        self.time += 37
        return self.time

    def region(self, name):
        if name not in self.regions:
            paradigm = Paradigm.MPI if name.startswith("MPI_") else Paradigm.USER
            role = RegionRole.FUNCTION
            self.regions[name] = self.trace.definitions.region(name, region_role=role, paradigm=paradigm)
        return self.regions[name]

    def enter(self, name):
        self.writer.enter(self.now(), self.region(name))

    def leave(self, name):
        self.writer.leave(self.now(), self.region(name))

    def call(self, name, *records):
        self.enter(name)
        for record, arguments in records:
            getattr(self.writer, record)(self.now(), **arguments)
        self.leave(name)

    def message(self, key, peer, comm, tag, length):
        return {key: peer, "communicator": comm, "msg_tag": tag, "msg_length": length}

    def send(self, peer, comm, tag, length):
        return "mpi_send", self.message("receiver", peer, comm, tag, length)

    def recv(self, peer, comm, tag, length):
        return "mpi_recv", self.message("sender", peer, comm, tag, length)

    def isend(self, peer, comm, tag, length):
        self.request += 1
        return "mpi_isend", {**self.message("receiver", peer, comm, tag, length), "request_id": self.request}

    def ask(self):
        self.request += 1
        return "mpi_irecv_request", {"request_id": self.request}

    def irecv(self, peer, comm, tag, length, request):
        return "mpi_irecv", {**self.message("sender", peer, comm, tag, length), "request_id": request}

    def collective(self, name, operation, comm, root, sent, received):
        end = {
            "collective_op": operation,
            "communicator": comm,
            "root": root,
            "size_sent": sent,
            "size_received": received,
        }
        self.call(name, ("mpi_collective_begin", {}), ("mpi_collective_end", end))


def define(trace, ranks, threads):
    definitions = trace.definitions
    node = definitions.system_tree_node("node")
    locations, writers = [], []
    for rank in range(ranks):
        group = definitions.location_group(
            f"MPI Rank {rank}", location_group_type=LocationGroupType.PROCESS, system_tree_parent=node
        )
        for thread in range(threads if rank == 0 else 1):
            name = "Master thread" if thread == 0 else f"OMP thread {thread}"
            location = definitions.location(name, type=LocationType.CPU_THREAD, group=group)
            writers.append(trace.event_writer_from_location(location))
            if thread == 0:
                locations.append(location)
    everyone = definitions.group(
        "", group_type=GroupType.COMM_LOCATIONS, paradigm=Paradigm.MPI, members=locations
    )
    members = list(range(ranks))

    def comm(name, members, parent=None):
        group = definitions.group(
            name, group_type=GroupType.COMM_GROUP, paradigm=Paradigm.MPI, members=members
        )
        return definitions.comm(name, group=group, parent=parent)

    world = comm("MPI_COMM_WORLD", members)
    even = comm("even", members[::2], world)
    return writers, world, even


NONE = 0xFFFFFFFF


def give_own_definitions(trace, writer, swapped):
    """A clock that is off by 500 ticks, and maybe numbers of communicators that are swapped."""
    definitions = _otf2.Archive_GetDefWriter(trace._handle, writer._location._ref)
    for time in (0, 1 << 40):
        _otf2.DefWriter_WriteClockOffset(definitions, time, 500, 0.0)
    if swapped:
        numbers = _otf2.IdMap_CreateFromUint64Array([1, 0], False)
        _otf2.DefWriter_WriteMappingTable(definitions, _otf2.MAPPING_COMM, numbers)
        _otf2.IdMap_Free(numbers)


def write(folder):
    with otf2.writer.open(folder, timer_resolution=TICKS) as trace:
        writers, world, even = define(trace, 3, 2)
        sides = [(3, CartPeriodicity.TRUE), (1, CartPeriodicity.FALSE)]
        dimensions = [trace.definitions.cart_dimension("", size, periodic) for size, periodic in sides]
        trace.definitions.cart_topology("grid", communicator=world, dimensions=dimensions)
        regions = {}
        for number, writer in enumerate(writers):
            rank = Rank(trace, writer, regions)
            if number == 1:
                for _ in range(5):
                    rank.enter("loop body")
                    rank.leave("loop body")
                continue
            own = max(number - 1, 0)
            if own > 0:
                give_own_definitions(trace, writer, own == 2)
            rank.call("MPI_Init")
            rank.enter("main")
            for step in range(10):
                rank.enter("exchange")
                posted = [rank.ask(), rank.ask()]
                rank.call("MPI_Irecv", posted[0])
                rank.call("MPI_Irecv", posted[1])
                rank.call("MPI_Isend", rank.isend((own + 1) % 3, world, 5, 8 * step))
                first, second = (arguments["request_id"] for _, arguments in posted)
                peer = (own + 2) % 3
                # The second completes first, after an unsuccessful test.
                rank.call("MPI_Test", ("mpi_request_test", {"request_id": first}))
                rank.call("MPI_Wait", rank.irecv(peer, world, 6, 16, second))
                done = ("mpi_isend_complete", {"request_id": rank.request})
                rank.call("MPI_Waitall", rank.irecv(peer, world, 5, 8 * step, first), done)
                rank.leave("exchange")
                rank.call("MPI_Sendrecv", rank.send(own, world, 1, 4), rank.recv(own, world, 1, 4))
                rank.collective("MPI_Allreduce", CollectiveOp.ALLREDUCE, world, NONE, 24, 24)
                if own != 1:
                    sent = 80 if own == 0 else 0
                    rank.collective("MPI_Bcast", CollectiveOp.BCAST, even, 0, sent, 40)
            # A call that begins several messages, a request that is given up, one that never ends.
            rank.call("MPI_Startall", rank.isend(0, world, 1, 1), rank.isend(1, world, 1, 2))
            given_up, never = rank.ask(), rank.ask()
            rank.call("MPI_Irecv", given_up)
            rank.call("MPI_Cancel", ("mpi_request_cancelled", given_up[1]))
            rank.call("MPI_Irecv", never)
            # A message outside of any call; the last rank dies in a call.
            record, arguments = rank.send(1, world, 9, 99)
            getattr(rank.writer, record)(rank.now(), **arguments)
            rank.collective("MPI_Barrier", CollectiveOp.BARRIER, world, NONE, 0, 0)
            if own == 2:
                rank.enter("MPI_Recv")
            else:
                rank.leave("main")
                rank.call("MPI_Finalize")


class Absent:
    """Writes a group that names rank 7, which the package would not let through."""

    def __init__(self, writer):
        self.writer = writer

    def write(self, definition, number, *arguments):
        if isinstance(definition, otf2.definitions.Group):
            arguments = (*arguments[:-1], [0, 7])
        self.writer.write(definition, number, *arguments)


def absent(folder):
    with otf2.writer.open(folder, timer_resolution=TICKS) as trace:
        writers, world, even = define(trace, 3, 1)
        group = even.group
        write = type(group).write
        type(group).write = lambda self, writer, registry: write(
            self, Absent(writer) if self is group else writer, registry
        )
        Rank(trace, writers[0], {}).call("MPI_Init")


def users(folder):
    with otf2.writer.open(folder, timer_resolution=TICKS) as trace:
        definitions = trace.definitions
        node = definitions.system_tree_node("node")
        group = definitions.location_group("program", system_tree_parent=node)
        regions = {}
        for name in ("first", "second"):
            location = definitions.location(name, type=LocationType.CPU_THREAD, group=group)
            rank = Rank(trace, trace.event_writer_from_location(location), regions)
            rank.enter("main")
            rank.leave("main")


def large(folder, calls):
    with otf2.writer.open(folder, timer_resolution=1_000_000_000) as trace:
        writers, world, _ = define(trace, 16, 1)
        regions = {}
        for own, writer in enumerate(writers):
            rank = Rank(trace, writer, regions)
            for step in range(calls // 6):
                for peer in ((own - 1) % 16, (own - 4) % 16):
                    rank.call("MPI_Recv", rank.recv(peer, world, 1, 1040))
                for peer in ((own + 1) % 16, (own + 4) % 16):
                    rank.call("MPI_Send", rank.send(peer, world, 1, 1040))
                request = rank.ask()
                rank.call("MPI_Irecv", request)
                rank.call("MPI_Wait", rank.irecv((own + 8) % 16, world, 2, 64, request[1]["request_id"]))


def message(event, key, peer):
    return {
        key: peer,
        "tag": event.msg_tag,
        "bytes": event.msg_length,
        "comm": event.communicator._ref,
    }


def calls(anchor):
    with otf2.reader.open(anchor) as trace:
        ticks = trace.definitions.clock_properties.timer_resolution
        offset = trace.definitions.clock_properties.global_offset

        def nanoseconds(time):
            return (time - offset) * 1_000_000_000 // ticks

        locations = {location: [] for location in trace.definitions.locations}
        for location, event in trace.events:
            locations[location].append(event)
        for location, events in locations.items():
            calls, is_open, asked = [], [], {}
            pending, completed = [], set()
            for event in events:
                kind = type(event).__name__
                call = is_open[-1] if is_open else None
                if kind == "Enter" and event.region.name.startswith("MPI_"):
                    is_open.append([event.region.name, nanoseconds(event.time), None, {}, 0])
                elif kind == "Leave" and event.region.name.startswith("MPI_"):
                    call = is_open.pop()
                    call[2] = nanoseconds(event.time) - call[1]
                    if call[0].startswith(("MPI_Wait", "MPI_Test")):
                        call[3]["n"] = call[4]
                        # Indexes among the pending requests, if they are not the oldest.
                        indexes = [index for index, request in enumerate(pending) if request in completed]
                        pending = [request for request in pending if request not in completed]
                        if indexes != list(range(len(indexes))):
                            call[3]["done"] = ",".join(map(str, indexes))
                        completed = set()
                    calls.append(call)
                elif kind in ("MpiSend", "MpiIsend"):
                    fields = message(event, "dest", event.receiver)
                    if kind == "MpiIsend":
                        pending.append(event.request_id)
                    if call is None:
                        calls.append(["MPI_Send", nanoseconds(event.time), None, fields, 0])
                    elif "dest" in call[3]:
                        for key, value in fields.items():
                            if call[3][key] != value:
                                call[3][key] = f"{call[3][key]},{value}"
                        call[3]["n"] = 2
                    else:
                        call[3].update(fields)
                elif kind == "MpiRecv" and "dest" in call[3]:
                    comm = call[3].pop("comm")
                    call[3].update(src=event.sender, recvtag=event.msg_tag, recvbytes=event.msg_length, comm=comm)
                elif kind == "MpiRecv":
                    call[3].update(message(event, "src", event.sender))
                elif kind == "MpiIrecvRequest":
                    asked[event.request_id] = call
                    pending.append(event.request_id)
                elif kind == "MpiIrecv":
                    asked[event.request_id][3].update(message(event, "src", event.sender))
                    call[4] += 1
                    completed.add(event.request_id)
                elif kind == "MpiIsendComplete":
                    call[4] += 1
                    completed.add(event.request_id)
                elif kind == "MpiRequestCancelled":
                    asked[event.request_id][3]["cancelled"] = 1
                elif kind == "MpiCollectiveEnd":
                    if event.root != NONE:
                        call[3]["root"] = event.root
                    if call[0] == "MPI_Allreduce":
                        call[3]["bytes"] = event.size_sent // len(event.communicator.group.members)
                    elif call[0] == "MPI_Bcast":
                        call[3]["bytes"] = event.size_received
                    call[3]["comm"] = event.communicator._ref
            calls.extend(is_open)
            for name, start, duration, fields, _ in calls:
                words = [name] + [f"{key}={value}" for key, value in fields.items()]
                duration = "-" if duration is None else duration
                print(location.group.name, start, duration, " ".join(words), sep="\t")


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "large":
        large(arguments[0], int(arguments[1]))
    else:
        {"write": write, "absent": absent, "users": users, "calls": calls}[command](arguments[0])
