"""Caches for the real engine: the same text and commands, tens of times faster.

Only the child process uses it: `install` patches the engine's modules. Cached are translations of a problem to SAS,
parsed grammar fragments and queries, and the command of a grounded operator. Tests compare it with the unpatched
engine.
"""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import Any

import fast_downward
import textworld
from textworld.envs import PddlEnv
from textworld.envs.pddl import logic, textgen

_translate = fast_downward.pddl2sas
_parse_grammar = textgen._parse_and_convert
_GameLogic = logic.GameLogic
_parse_query = lru_cache(None)(textworld.logic.Rule.parse_conjunctive_query)
_game_logic = lru_cache(4)(_GameLogic)


@lru_cache(2)
def _translate_once(domain: str, problem: str) -> Any:
    """The engine translates each problem four times, twice for a planner that is not used here."""
    return _translate(domain, problem)


@lru_cache(None)
def _parse_once(text: str, rule_name: str) -> Any:
    return _parse_grammar(text, rule_name=rule_name)


def _pddl2sas(domain: str, problem: str, verbose: bool = False, optimize: bool = False) -> Any:
    return _translate_once(domain, problem)


def _parse(text: str, rule_name: str, **_: Any) -> list[Any]:
    return [_clone(symbol) for symbol in _parse_once(text, rule_name)]


def _clone(symbol: Any) -> Any:
    """A copy whose context can be set without changing the original. The engine makes deep copies."""
    twin = copy.copy(symbol)
    if isinstance(twin, textgen.ListSymbol):
        twin.symbol = _clone(twin.symbol)
    if isinstance(twin, textgen.ConditionalSymbol):
        twin.expression = _clone(twin.expression)
    return twin


def _copy_context(context: dict[str, Any]) -> dict[str, Any]:
    return {**context, "variables": dict(context["variables"]), "mapping": dict(context["mapping"])}


def _copy_symbol(self: Any, context: dict[str, Any]) -> Any:
    twin = _clone(self)
    twin.context = _copy_context(context)
    return twin


def _query(expression: str, context: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for mapping in context["state"].all_assignments(_parse_query(expression), context["mapping"]):
        twin = _copy_context(context)
        twin["variables"].update({p.name: context["entity_infos"][v.name] for p, v in mapping.items()})
        twin["mapping"].update(mapping)
        found.append(twin)
    return found


def _replace(self: Any, start: Any) -> list[Any]:
    rules = self._rules.get(str(start))
    if not rules:
        raise textgen.CSGUnknownSymbolError(start)
    state, mapping = start.context["state"], start.context["mapping"]
    for rule in rules:
        if not rule.condition or any(
            True for _ in state.all_assignments(_parse_query(rule.condition), mapping)
        ):
            return [_copy_symbol(symbol, start.context) for symbol in rule.rhs]
    raise IndexError(f"no rule of #{start}# applies")


def install() -> None:
    """Patches the engine's modules in this process."""
    fast_downward.pddl2sas = _pddl2sas
    logic.GameLogic = _game_logic
    textgen._parse_and_convert = _parse
    textgen.copy_context = _copy_context
    textgen.query = _query
    textgen.Symbol.copy = _copy_symbol
    textgen.ContextSensitiveGrammar.replace = _replace


class CachedPddlEnv(PddlEnv):
    """`PddlEnv` that derives the command of each grounded operator once a game."""

    def load(self, filename_or_data: Any) -> None:
        """Loads a game and forgets the commands of the last one."""
        self._command_of: dict[str, str] = {}
        super().load(filename_or_data)

    def _gather_infos(self) -> None:
        state = self._pddl_state
        actions = list(state.all_applicable_actions())
        self.state["won"], self.state["lost"] = state.check_goal(), False
        self.state["last_action"], self.state["_last_action"] = None, self._last_action
        self.state["_valid_actions"] = actions
        self.state["_valid_commands"] = [self._command(action) for action in actions]
        self.state["admissible_commands"] = sorted(set(self.state["_valid_commands"]))

    def _command(self, action: Any) -> str:
        operator = self._pddl_state._operators[action.id].name
        if operator not in self._command_of:
            context = {
                "state": self._pddl_state,
                "facts": list(self._pddl_state.facts),
                "variables": {p.name: self._entity_infos[v.name] for p, v in action.mapping.items()},
                "mapping": action.mapping,
                "entity_infos": self._entity_infos,
            }
            action.command_template = self._logic.grammar.derive(action.command_template, context)
            names = {key: info.name for key, info in self._entity_infos.items()}
            self._command_of[operator] = action.format_command(names)
        return self._command_of[operator]
