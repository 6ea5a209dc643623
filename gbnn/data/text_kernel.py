"""A compiled parser of ``label,label index:value ...`` lines: what it does not know it leaves to Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.engine import kept_on_disk

__all__ = ["DONE", "FULL", "INTEGER", "LIST", "NONE", "ODD", "SPELLED", "TEXT", "parse"]

Array = np.ndarray[Any, Any]

DONE, FULL, ODD = range(3)
"""How `parse` ended: at the end, for want of room for rows, or before a line that Python has to read."""

NONE, INTEGER, SPELLED, LIST, TEXT = range(5)
"""The label of a row: none, an integer, one not as Python writes it (+1, 007), several, or another text."""

POWERS = np.array([float(f"1e{k}") for k in range(81)])

SPACE, TAB, NEWLINE, RETURN, HASH, COLON, COMMA = 32, 9, 10, 13, 35, 58, 44
PLUS, MINUS, POINT, ZERO, NINE = 43, 45, 46, 48, 57
MOST = 2**60  # the largest index
EXACT = 2**53  # integers up to here are float64 numbers


def _parse(text, end, counts, lines, starts, columns, values, kinds, spans, label_starts, labels, unsorted):  # type: ignore[no-untyped-def]
    """Parse whole lines from `counts[0]` up to `end`; the byte before `end` is a newline.

    Fills the arrays and moves on `counts`: position, rows, entries, labels, number of the next line.
    A number becomes the float32 nearest to the float64 nearest to its digits, as Python and NumPy make it:
    where rounding leaves a doubt, the line is left to them.
    """
    p, row, entry, label, line = counts[0], counts[1], counts[2], counts[3], counts[4]
    status = DONE
    while p < end:
        if row == kinds.size:
            status = FULL
            break
        begin, first_entry, first_label = p, entry, label
        odd = False
        while text[p] == SPACE or text[p] == TAB:
            p += 1
        content = text[p] != NEWLINE and text[p] != RETURN and text[p] != HASH
        if content:
            # -- The label: the first word, unless it is a pair already.
            q, colon, comma = p, False, False
            while text[q] > SPACE and text[q] != HASH:
                colon = colon or text[q] == COLON
                comma = comma or text[q] == COMMA
                odd = odd or text[q] > 127
                q += 1
            kind = NONE
            if not colon:
                spans[row, 0], spans[row, 1] = p, q
                kind = LIST if comma else INTEGER
                negative = False
                if not comma and (text[p] == MINUS or text[p] == PLUS):
                    negative = text[p] == MINUS
                    if not negative:
                        kind = SPELLED
                    p += 1
                whole, digits, zero = 0, 0, False
                while p <= q:
                    c = text[p] if p < q else COMMA
                    if ZERO <= c <= NINE and digits < 18:
                        zero = zero or (digits == 0 and c == ZERO)
                        whole = whole * 10 + (c - ZERO)
                        digits += 1
                    elif c == COMMA and digits:
                        if kind == INTEGER and zero and (digits > 1 or negative):
                            kind = SPELLED
                        labels[label] = -whole if negative else whole
                        label += 1
                        whole, digits, zero = 0, 0, False
                    else:
                        kind, label = TEXT, first_label
                        break
                    p += 1
                p = q
                while text[p] == SPACE or text[p] == TAB:
                    p += 1
            if text[p] == 113 and text[p + 1] == 105 and text[p + 2] == 100 and text[p + 3] == COLON:
                while text[p] > SPACE and text[p] != HASH:
                    odd = odd or text[p] > 127
                    p += 1
            # -- The pairs.
            last = -1
            while not odd:
                while text[p] == SPACE or text[p] == TAB:
                    p += 1
                if text[p] == NEWLINE or text[p] == RETURN or text[p] == HASH:
                    break
                key, q = 0, p
                while ZERO <= text[p] <= NINE and key <= MOST // 10:
                    key = key * 10 + (text[p] - ZERO)
                    p += 1
                if p == q or key > MOST or text[p] != COLON:
                    odd = True
                    break
                p += 1
                negative = text[p] == MINUS
                if negative or text[p] == PLUS:
                    p += 1
                mantissa, digits, power, seen, cut = 0, 0, 0, False, False
                point = False
                while True:
                    c = text[p]
                    if ZERO <= c <= NINE:
                        seen = True
                        if digits < 18:
                            mantissa = mantissa * 10 + (c - ZERO)
                            if mantissa:
                                digits += 1
                            if point:
                                power -= 1
                        else:
                            cut = True
                            if not point:
                                power += 1
                    elif c == POINT and not point:
                        point = True
                    else:
                        break
                    p += 1
                if seen and (text[p] == 101 or text[p] == 69):  # e, E
                    p += 1
                    down = text[p] == MINUS
                    if down or text[p] == PLUS:
                        p += 1
                    exponent, q = 0, p
                    while ZERO <= text[p] <= NINE and p - q < 4:
                        exponent = exponent * 10 + (text[p] - ZERO)
                        p += 1
                    seen = p > q
                    power += -exponent if down else exponent
                c = text[p]
                ends = c in (SPACE, TAB, NEWLINE, RETURN, HASH)
                if not (seen and ends and (mantissa == 0 or -80 <= power <= 80)):
                    odd = True
                    break
                if mantissa == 0:
                    number = 0.0
                else:
                    number = float(mantissa)
                    number = number * POWERS[power] if power >= 0 else number / POWERS[-power]
                    if cut or mantissa > EXACT or power > 22 or power < -22:
                        # Two or three roundings, each within 2**-53: below 1e-15 of it in all.
                        odd = np.float32(number * (1.0 - 4e-15)) != np.float32(number * (1.0 + 4e-15))
                    odd = odd or not 1e-37 < number < 3e38
                    if odd:
                        break
                columns[entry] = key
                values[entry] = np.float32(-number if negative else number)
                entry += 1
                unsorted[row] = key <= last or (last >= 0 and unsorted[row])
                last = key
            if last < 0:
                unsorted[row] = False
        # -- The rest of the line.
        while not odd and text[p] != NEWLINE and text[p] != RETURN:
            odd = text[p] > 127
            p += 1
        if odd:
            p, entry, label = begin, first_entry, first_label
            status = ODD
            break
        p += 2 if p + 1 < end and text[p] == RETURN and text[p + 1] == NEWLINE else 1
        if content:
            kinds[row] = kind
            lines[row] = line
            row += 1
            starts[row] = entry
            label_starts[row] = label
        line += 1
    counts[0], counts[1], counts[2], counts[3], counts[4] = p, row, entry, label, line
    return status


parse = kept_on_disk(_parse, nogil=True)
