"""Training on several processes of one machine (section 3 of the paper): by examples, without locks, or by words.

| scheme         | what each of P processes does                           | what they exchange in every update     |
|----------------|---------------------------------------------------------|----------------------------------------|
| `data`         | its share of every mini-batch, on parameters of its own | all parameters, which are averaged     |
| `asynchronous` | every P-th mini-batch, on parameters that all share     | nothing: none waits, and none locks    |
| `vocabulary`   | every mini-batch, for its block of the rows of O        | 2 B numbers, then B K, which are added |

With `data` and `vocabulary` the network is that of one process to rounding, whatever the preset: the processes draw the
same random numbers. With `asynchronous`, where updates may overwrite parts of each other, it is another in every run,
and about as good. That scheme and `vocabulary` are the paper's two (its sections 3.1 and 3.2).

Nothing here knows what is trained: a `Team` says what a process sees to, `run` starts the processes.
"""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections.abc import Callable
from functools import partial
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from typing import TypeVar

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch import Tensor, nn

from nplm2003.errors import UserError
from nplm2003.neural.objectives import Objective

Result = TypeVar("Result")


def share(number: int, rank: int, processes: int) -> slice:
    """Those of `number` things in a row that process `rank` sees to; shares differ by one at most."""
    return slice(number * rank // processes, number * (rank + 1) // processes)


class Team:
    """The processes that train a network, as one of them sees them. This one is alone."""

    gain = 1  # what each multiplies the rate with, because `meet` averages
    entropy: tuple[int, ...] = ()  # seeds the random numbers of a process apart from those of others

    def __init__(self, rank: int = 0, processes: int = 1) -> None:
        self.rank, self.processes = rank, processes
        self.rows = slice(None)  # of O: those that this process moves

    def receive(self, model: nn.Module) -> None:
        """Make ready a model that comes from another process, in memory that both share."""

    def objective(self, single: Objective) -> Objective:
        """What takes the place of the objective `single` of one process."""
        return single

    def takes(self, number: int) -> bool:
        """Whether mini-batch `number` of a stretch has examples for this process."""
        return True

    def part(self, size: int) -> slice:
        """Which of the `size` examples of a mini-batch that it takes are its own; there may be none."""
        return slice(0, size)

    def meet(self, model: nn.Module) -> None:
        """What the processes do together after each update."""

    def gather(self, model: nn.Module) -> None:
        """Make the model whole, and the same in all processes, after an epoch of updates."""

    def total(self, *values: float) -> tuple[float, ...]:
        """The sums of values over all processes."""
        return values


class _Several(Team):
    def receive(self, model: nn.Module) -> None:
        """See `Team`."""
        for parameter in model.parameters():
            parameter.data = parameter.data.clone()

    def gather(self, model: nn.Module) -> None:
        """See `Team`. Nobody reads the parameters before all have moved them."""
        dist.barrier()

    def total(self, *values: float) -> tuple[float, ...]:
        """See `Team`."""
        sums = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(sums)
        return tuple(sums.tolist())


class Data(_Several):
    """Synchronous updates: theta - rate * sum of g_p is the mean over p of theta - P * rate * g_p.

    g_p is the summed gradient of the examples of process p. So every process makes its own update, at P times the
    rate, and the parameters are averaged: objectives need not know.
    """

    def __init__(self, rank: int, processes: int) -> None:
        super().__init__(rank, processes)
        self.gain = processes

    def part(self, size: int) -> slice:
        """See `Team`."""
        return share(size, self.rank, self.processes)

    def meet(self, model: nn.Module) -> None:
        """See `Team`."""
        moved = [parameter.data for parameter in model.parameters() if parameter.requires_grad]
        for sent in [dist.all_reduce(parameter, async_op=True) for parameter in moved]:
            sent.wait()
        for parameter in moved:
            parameter.div_(self.processes)


class Asynchronous(_Several):
    """Updates of shared parameters without locks (section 3.1; now known as Hogwild, Niu et al. 2011)."""

    def __init__(self, rank: int, processes: int) -> None:
        super().__init__(rank, processes)
        self.entropy = (rank,)

    def receive(self, model: nn.Module) -> None:
        """See `Team`. The memory stays shared."""

    def takes(self, number: int) -> bool:
        """See `Team`."""
        return number % self.processes == self.rank


class Vocabulary(_Several):
    """O in blocks of rows, one for each process; everything else is done by all alike (section 3.2).

    A process keeps all of O and moves its block; the other rows are out of date until the end of the epoch.
    """

    def receive(self, model: nn.Module) -> None:
        """See `Team`."""
        super().receive(model)
        self.rows = share(len(model.get_parameter("O")), self.rank, self.processes)

    def objective(self, single: Objective) -> Objective:
        """See `Team`. `single` is exact softmax over all words."""
        return partial(split_softmax, first=self.rows.start)

    def gather(self, model: nn.Module) -> None:
        """See `Team`."""
        O = model.get_parameter("O").data
        for rank in range(self.processes):
            dist.broadcast(O[share(len(O), rank, self.processes)], src=rank)


SCHEMES: dict[str, type[Team]] = {"data": Data, "asynchronous": Asynchronous, "vocabulary": Vocabulary}


@torch.no_grad()
def split_softmax(O: Tensor, z: Tensor, targets: Tensor, rate: float, *, first: int) -> tuple[float, Tensor]:
    """`nplm2003.neural.objectives.softmax` where O (rows, K) holds the words from `first` on, others the other words.

    All processes call it with the same z and `targets`, and return the same cost and gradient by z. The paper sends the
    largest logits as well, in every update; here they are needed only where exponentials leave the range of numbers.
    The move of O is made while the gradient by z is under way.
    """
    own = ((targets >= first) & (targets < first + len(O))).nonzero().squeeze(1)  # examples whose target is here
    rows, z_own = targets[own] - first, z[own]
    O_target = O.index_select(0, rows)
    E = (O @ z.T).exp_()  # (rows, B)
    sums = torch.stack((E.sum(dim=0), z.new_zeros(len(z)).index_copy_(0, own, (z_own * O_target).sum(dim=1))))
    dist.all_reduce(sums)
    Z, y_target = sums
    shift = torch.zeros_like(Z)
    if not bool(((Z > 1e-30) & (Z < 1e30)).all()):
        E = O @ z.T
        shift = E.amax(dim=0)
        dist.all_reduce(shift, dist.ReduceOp.MAX)
        Z = E.sub_(shift).exp_().sum(dim=0)
        dist.all_reduce(Z)
    nats = Z.log() + (shift - y_target)
    dz = (E.T @ O).div_(Z.unsqueeze(1)).index_add_(0, own, O_target, alpha=-1)
    sent = dist.all_reduce(dz, async_op=True)
    O.addmm_(E, z * (rate / Z).unsqueeze(1), alpha=-1)
    O.index_add_(0, rows, z_own, alpha=rate)
    sent.wait()
    return float(nats.sum()), dz


def run(work: Callable[[Team], Result], scheme: str, processes: int) -> Result:
    """Call `work(team)` in so many new processes, a group of torch.distributed; return what the first one returns.

    Whatever one of them raises is raised here, once all have been ended; they also end with this process, however that
    ends. `work` is pickled, tensors in it in shared memory; what it returns is pickled too, and holds none.
    """
    store = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    context = torch.multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["nplm2003.neural.training"])  # imported once, not in every process
    workers, waiting = [], {}
    results: dict[int, Result] = {}
    try:
        for rank in range(processes):
            receiver, sender = context.Pipe(duplex=False)
            arguments = (SCHEMES[scheme](rank, processes), store.port, sender, work)
            worker = context.Process(target=_work, args=arguments, daemon=True)
            worker.start()
            sender.close()  # so that the end of the worker is the end of the pipe
            workers.append(worker)
            waiting[receiver] = rank
        while waiting:
            for ready in wait(list(waiting)):
                assert isinstance(ready, Connection)
                rank = waiting.pop(ready)
                try:
                    result = ready.recv()
                except EOFError:
                    raise UserError(
                        f"process {rank + 1} of the {processes} that train died (for want of memory?): run the same "
                        "command again, it goes on from the last finished epoch"
                    ) from None
                if isinstance(result, Exception):
                    raise result
                results[rank] = result
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
    return results[0]


def _work(team: Team, port: int, sender: Connection, work: Callable[[Team], Result]) -> None:
    """What a new process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt reaches the first process, which ends this one
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # What Lightning looks for: that processes are started already, and that threads are seen to.
    os.environ |= {"LOCAL_RANK": str(team.rank), "NODE_RANK": "0", "OMP_NUM_THREADS": "1"}
    try:
        store = dist.TCPStore("localhost", port, is_master=False)
        dist.init_process_group("gloo", store=store, rank=team.rank, world_size=team.processes)
        result: Result | Exception = work(team)
        dist.barrier()  # nobody leaves while another listens
    except Exception as error:
        error.add_note(traceback.format_exc())
        result = error
    sender.send(result)


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
