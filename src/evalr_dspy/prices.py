"""What a call would cost, by the client's own list of prices."""

from __future__ import annotations

import dspy
from dspy.lm15 import Message, Response, Usage


def price(lm: dspy.BaseLM, *, asked: int, answered: int) -> float | None:
    """US dollars for one call of so many tokens in and out, None where the client has no price for the model.

    It is what the client itself makes of a server's usage, so that an estimate and the account agree.
    """
    if not isinstance(getattr(lm, "engine", None), str):
        return None  # an engine of one's own has no price list
    usage = Usage(input_tokens=asked, output_tokens=answered)
    try:
        from dspy.clients.capabilities import resolve
        from dspy.clients.costs import estimate_cost

        route = resolve(lm)
        answer = Response(id=None, model=route.model, message=Message.assistant(" "), finish_reason="stop", usage=usage)
        cost, _ = estimate_cost(answer, provider=route.provider, requested_model=route.model)
    except Exception:  # noqa: BLE001  a name that the client cannot place has no price, however it says so
        return None
    return None if cost is None else float(cost)
