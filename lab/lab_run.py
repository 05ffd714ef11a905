"""What `cargo xtask lab` does through labgrid. Each line of its output is a JSON object."""

import argparse
import json
import os
import sys
import traceback

import grpc
from labgrid import Environment
from labgrid.remote.client import Error as RemoteError
from labgrid.remote.client import start_session
from labgrid.strategy import Strategy, StrategyError
from lab_place import Client, Reserved
from lab_signals import Interrupts, within


def say(**what):
    print(json.dumps(what), flush=True)


def root(error):
    """What began it: labgrid's errors are often raised from another one. Those of the strategy say all that there is to say."""
    while error.__cause__ is not None and not isinstance(error, StrategyError):
        error = error.__cause__
    return error


def words(error):
    """An error in one line."""
    text = getattr(error, "msg", None) or str(error)
    text = " ".join(text.split())
    plain = isinstance(error, (StrategyError, RemoteError)) and text
    return text if plain else f"{type(error).__name__}: {text}"


def places(arguments):
    """The places whose tags have all of the wanted values."""
    session = start_session(arguments.coordinator)
    wanted = [pair.split("=", 1) for pair in arguments.tags]
    for name, place in sorted(session.places.items()):
        tags = {**place.tags, "name": name}
        if all(tags.get(key) == value for key, value in wanted):
            say(place=name, tags=place.tags)
    session.loop.run_until_complete(session.stop())
    session.loop.run_until_complete(session.close())


def machine(arguments):
    """The target of the environment, and its strategy."""
    environment = Environment(arguments.env)
    target = environment.get_target(arguments.target)
    if target is None:
        raise StrategyError(f"{arguments.env} has no target `{arguments.target}`")
    strategy = target.get_driver(Strategy)
    strategy.log = arguments.log
    for limit in ("timeout", "silence"):
        if getattr(arguments, limit) is not None:
            setattr(strategy, limit, getattr(arguments, limit))
    return target, strategy


def off(strategy):
    """Switches the machine off. SIGINT does not end this."""
    with within(strategy.load_timeout, "switching it off"):
        strategy.transition("off")


def boot(arguments, interrupts):
    """Runs the job on the environment's machine."""
    strategy = None
    try:
        with interrupts.taken():
            target, strategy = machine(arguments)
            say(state="booting")
            with within(strategy.load_timeout, "loading the job"):
                strategy.transition("loaded")
            with within(strategy.timeout, "switching it on"):
                strategy.transition("running")
            strategy.transition("ended")
    except BaseException as error:
        if strategy is not None:
            try:
                off(strategy)
            except Exception as other:
                raise StrategyError(f"{words(root(error))}; and it is not switched off: {words(root(other))}") from other
        raise
    off(strategy)
    target.cleanup()


def run(arguments):
    """The whole of it. What went wrong is a complaint: there may be a report all the same."""
    complaint, interrupts = None, Interrupts()
    try:
        if arguments.place:
            os.environ["LG_COORDINATOR"] = arguments.coordinator
            say(state="waiting")
            with Reserved(Client(arguments.coordinator), arguments.place, arguments.wait, interrupts):
                boot(arguments, interrupts)
        else:
            boot(arguments, interrupts)
    except KeyboardInterrupt:
        complaint = "interrupted"
    except Exception as error:  # pylint: disable=broad-except
        traceback.print_exc()
        complaint = words(root(error))
    say(state="done", complaint=complaint)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--coordinator", default="127.0.0.1:20408")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("places")
    command.add_argument("tags", nargs="*")
    command.set_defaults(run=places)
    command = commands.add_parser("run")
    command.add_argument("--env", required=True)
    command.add_argument("--target", default="main")
    command.add_argument("--place")
    command.add_argument("--log", required=True)
    command.add_argument("--wait", type=float, default=3600)
    command.add_argument("--timeout", type=float)
    command.add_argument("--silence", type=float)
    command.set_defaults(run=run)
    arguments = parser.parse_args()
    try:
        arguments.run(arguments)
    except (OSError, grpc.RpcError, RemoteError) as error:
        say(error=f"the coordinator at {arguments.coordinator}: {words(root(error))}")
        sys.exit(1)


if __name__ == "__main__":
    main()
