//! An amount as Go keeps it: a number with a power of ten, or, if that is too small for it, one of any size; and its text, if
//! the parser found that it was the canonical one.

use std::fmt::Write as _;

/// Most digits that the parser keeps in 64 bits.
const DIGITS_MAX: usize = 18;

/// The parser's form of a text.
#[derive(Debug, PartialEq, Eq)]
enum Kept {
    /// `value * 10^scale`, and whether the text is kept beside it.
    Small { value: i64, scale: i32, text: bool },
    /// `unscaled / 10^scale`.
    Large { unscaled: i128, scale: i32 },
}

/// Writes the struct of an amount in its canonical form.
pub(super) fn write(out: &mut String, text: &str) {
    let (kept, format) = parse(text).unwrap_or((
        Kept::Small {
            value: 0,
            scale: 0,
            text: false,
        },
        "",
    ));
    let (value, scale, own) = match kept {
        Kept::Small { value, scale, text } => (value, scale, text),
        Kept::Large { .. } => (0, 0, false),
    };
    let _ = write!(
        out,
        "{{i:(resource.int64Amount){{value:(int64){value} scale:(resource.Scale){scale}}} d:(resource.infDecAmount){{Dec:(*inf.Dec)"
    );
    match kept {
        Kept::Small { .. } => out.push_str("<nil>"),
        Kept::Large { unscaled, scale } => {
            let _ = write!(
                out,
                "{{unscaled:(big.Int){{neg:(bool){} abs:(big.nat)[",
                unscaled < 0
            );
            let size = unscaled.unsigned_abs();
            let (low, high) = (size & u128::from(u64::MAX), size >> 64);
            let _ = write!(out, "{low}");
            if high > 0 {
                let _ = write!(out, " {high}");
            }
            let _ = write!(out, "]}} scale:(inf.Scale){scale}}}");
        }
    }
    let own = if own { text } else { "" };
    let _ = write!(out, "}} s:(string){own} Format:(resource.Format){format}}}");
}

/// Reads an amount and the name of its family of suffixes.
fn parse(text: &str) -> Option<(Kept, &'static str)> {
    if text == "0" {
        let kept = Kept::Small {
            value: 0,
            scale: 0,
            text: true,
        };
        return Some((kept, "DecimalSI"));
    }
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, suffix) = rest.split_at_checked(end)?;
    let signed = |value: i128| if negative { -value } else { value };
    let number: i128 = digits.parse().ok()?;
    let binary = |name: &str| match name {
        "Ki" => Some(10),
        "Mi" => Some(20),
        "Gi" => Some(30),
        "Ti" => Some(40),
        "Pi" => Some(50),
        "Ei" => Some(60),
        _ => None,
    };
    if let Some(bits) = binary(suffix) {
        let value = number.checked_mul(1 << bits)?;
        // Fifteen digits, less those that the suffix takes.
        let fits = digits.len() + bits * 3 / 10 < 15;
        return Some(match i64::try_from(value).ok().filter(|_| fits) {
            Some(value) => {
                let kept = Kept::Small {
                    value: if negative { -value } else { value },
                    scale: 0,
                    text: number & 7 != 0,
                };
                (kept, "BinarySI")
            }
            None if value > i128::from(i64::MAX) => {
                let unscaled = signed(i128::from(i64::MAX));
                (Kept::Large { unscaled, scale: 0 }, "BinarySI")
            }
            None => {
                let unscaled = signed(value.checked_mul(1_000_000_000)?);
                (Kept::Large { unscaled, scale: 9 }, "BinarySI")
            }
        });
    }
    let (power, format) = match suffix {
        "n" => (-9, "DecimalSI"),
        "u" => (-6, "DecimalSI"),
        "m" => (-3, "DecimalSI"),
        "" => (0, "DecimalSI"),
        "k" => (3, "DecimalSI"),
        "M" => (6, "DecimalSI"),
        "G" => (9, "DecimalSI"),
        "T" => (12, "DecimalSI"),
        "P" => (15, "DecimalSI"),
        "E" => (18, "DecimalSI"),
        other => (
            other.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?,
            "DecimalExponent",
        ),
    };
    if digits.len() <= DIGITS_MAX
        && let Ok(value) = i64::try_from(signed(number))
    {
        let kept = Kept::Small {
            value,
            scale: power,
            text: power % 3 == 0 && !digits.ends_with("000"),
        };
        return Some((kept, format));
    }
    let nanos = u32::try_from(power + 9)
        .ok()
        .and_then(|zeros| 10i128.checked_pow(zeros))
        .and_then(|factor| number.checked_mul(factor))?;
    let unscaled = signed(nanos);
    Some((Kept::Large { unscaled, scale: 9 }, format))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("0", 0, 0, true, "DecimalSI")]
    #[case("100m", 100, -3, true, "DecimalSI")]
    #[case("1", 1, 0, true, "DecimalSI")]
    #[case("64Mi", 64 << 20, 0, false, "BinarySI")]
    #[case("100Mi", 100 << 20, 0, true, "BinarySI")]
    #[case("1e3", 1, 3, true, "DecimalExponent")]
    #[case("-5", -5, 0, true, "DecimalSI")]
    fn small(
        #[case] text: &str,
        #[case] value: i64,
        #[case] scale: i32,
        #[case] own: bool,
        #[case] format: &str,
    ) {
        let kept = Kept::Small {
            value,
            scale,
            text: own,
        };
        assert_eq!(parse(text), Some((kept, format)));
    }

    #[rstest]
    #[case("1Pi", 1_125_899_906_842_624_000_000_000, 9)]
    #[case("1000000Gi", 1_073_741_824_000_000_000_000_000, 9)]
    fn large(#[case] text: &str, #[case] unscaled: i128, #[case] scale: i32) {
        assert_eq!(parse(text), Some((Kept::Large { unscaled, scale }, "BinarySI")));
    }
}
