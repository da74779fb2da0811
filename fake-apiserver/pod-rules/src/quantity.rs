//! Amounts: `100m`, `1.5Gi`, `1e3`, and the one form in which the server writes each.

use shared_json::Value;

/// A parsed amount: a whole number of 10^-9 parts, and the family of suffixes it was written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Binary,
    Decimal,
    Exponent,
}

const NANO: i128 = 1_000_000_000;
const BINARY: [(&str, u32); 6] = [
    ("Ki", 10),
    ("Mi", 20),
    ("Gi", 30),
    ("Ti", 40),
    ("Pi", 50),
    ("Ei", 60),
];
const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

impl Quantity {
    /// The amount in parts of 10^-9.
    pub fn nanos(self) -> i128 {
        self.nanos
    }

    /// Another amount, in parts of 10^-9, with the same family of suffixes.
    pub fn with_nanos(self, nanos: i128) -> Quantity {
        Quantity { nanos, ..self }
    }

    /// The amount in whole units, rounded up.
    pub fn units(self) -> i128 {
        self.nanos.div_euclid(NANO) + i128::from(self.nanos.rem_euclid(NANO) != 0)
    }

    /// The amount in whole units, none of it lost.
    pub fn rounded_up(self) -> Quantity {
        Quantity {
            nanos: self.units().saturating_mul(NANO),
            ..self
        }
    }

    /// Whether the amount has no fraction.
    pub fn is_whole(self) -> bool {
        self.nanos % NANO == 0
    }

    /// The sum, in the family of suffixes of `self` (of `other` if `self` is nothing).
    pub fn plus(self, other: Quantity) -> Quantity {
        Quantity {
            nanos: self.nanos.saturating_add(other.nanos),
            format: if self.nanos == 0 {
                other.format
            } else {
                self.format
            },
        }
    }

    /// The difference, in the family of suffixes of `self`.
    pub fn minus(self, other: Quantity) -> Quantity {
        Quantity {
            nanos: self.nanos.saturating_sub(other.nanos),
            ..self
        }
    }

    /// So many things.
    pub fn count(things: i64) -> Quantity {
        Quantity {
            nanos: i128::from(things) * NANO,
            format: Format::Decimal,
        }
    }

    /// The amount that a JSON value stands for; nothing if it does not stand for one.
    pub fn of(value: &Value) -> Quantity {
        let read = match value {
            Value::String(text) => Quantity::parse(text),
            Value::Number(number) => Quantity::parse(&number.to_string()),
            _ => None,
        };
        read.unwrap_or(Quantity::count(0))
    }
    /// Reads an amount. Precision finer than 10^-9 is rounded up, amounts beyond 2^63-1 are capped, as the server does.
    pub fn parse(text: &str) -> Option<Quantity> {
        let (negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, text.get(1..)?),
            b'+' => (false, text.get(1..)?),
            _ => (false, text),
        };
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, suffix) = rest.split_at_checked(end)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let (format, two, ten) = scale(suffix)?;
        let mut digits: i128 = 0;
        for digit in whole.chars().chain(fraction.chars()) {
            digits = digits
                .saturating_mul(10)
                .saturating_add(i128::from(digit.to_digit(10)?));
        }
        // value = digits * 10^(ten - fraction digits) * 2^two, in nanos.
        let mut nanos = digits.saturating_mul(1i128.checked_shl(two)?);
        let mut power = ten + 9 - i32::try_from(fraction.len()).ok()?;
        while power > 0 && nanos != 0 {
            nanos = nanos.saturating_mul(10);
            power -= 1;
        }
        let mut inexact = false;
        while power < 0 && (nanos != 0 || inexact) {
            inexact |= nanos % 10 != 0;
            nanos /= 10;
            power += 1;
            if nanos == 0 {
                break;
            }
        }
        nanos = (nanos + i128::from(inexact)).min(i128::from(i64::MAX) * NANO);
        Some(Quantity {
            nanos: if negative { -nanos } else { nanos },
            format,
        })
    }

    /// The next larger amount of whole thousandths; none if it is one already.
    pub fn in_thousandths(self) -> Option<Quantity> {
        let thousandth = NANO / 1000;
        (self.nanos % thousandth != 0).then(|| Quantity {
            nanos: (self.nanos.div_euclid(thousandth) + 1) * thousandth,
            ..self
        })
    }

    /// The canonical text: no fraction, the largest suffix of its family that loses nothing.
    pub fn canonical(self) -> String {
        if self.nanos == 0 {
            return "0".to_owned();
        }
        let format = match self.format {
            // A fraction, or less than 1Ki, is written with decimal suffixes.
            Format::Binary if self.nanos % NANO != 0 || self.nanos.abs() < 1024 * NANO => Format::Decimal,
            format => format,
        };
        if format == Format::Binary {
            let whole = self.nanos / NANO;
            let fit = BINARY.iter().rev().find(|(_, bits)| whole % (1i128 << bits) == 0);
            return match fit {
                Some((suffix, bits)) => format!("{}{suffix}", whole >> bits),
                None => whole.to_string(),
            };
        }
        let mut value = self.nanos;
        let mut power = -9;
        while value % 1000 == 0 && power < 18 {
            value /= 1000;
            power += 3;
        }
        match format {
            Format::Exponent if power != 0 => format!("{value}e{power}"),
            _ => {
                let suffix = DECIMAL
                    .iter()
                    .find(|(_, p)| *p == power)
                    .map_or("", |(suffix, _)| *suffix);
                format!("{value}{suffix}")
            }
        }
    }
}

fn scale(suffix: &str) -> Option<(Format, u32, i32)> {
    if let Some((_, bits)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Some((Format::Binary, *bits, 0));
    }
    if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((Format::Decimal, 0, *power));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    let power: i32 = exponent.parse().ok().filter(|power| (-64..=64).contains(power))?;
    Some((Format::Exponent, 0, power))
}

/// The canonical form of a JSON value that stands for an amount; none if it does not.
pub fn canonical(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Quantity::parse(text.trim()).map(Quantity::canonical),
        Value::Number(number) => Quantity::parse(&number.to_string()).map(Quantity::canonical),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("100m", Some("100m"))]
    #[case("0.1", Some("100m"))]
    #[case("1000m", Some("1"))]
    #[case("1.5Gi", Some("1536Mi"))]
    #[case("1024Mi", Some("1Gi"))]
    #[case("1000Mi", Some("1000Mi"))]
    #[case("0.5Mi", Some("512Ki"))]
    #[case("512", Some("512"))]
    #[case("1e3", Some("1e3"))]
    #[case("1500e0", Some("1500"))]
    #[case("2000", Some("2k"))]
    #[case("0Gi", Some("0"))]
    #[case("-1", Some("-1"))]
    #[case("1Kib", None)]
    #[case("", None)]
    #[case(".", None)]
    #[case("1.2.3", None)]
    #[case("abc", None)]
    fn canonical_form(#[case] text: &str, #[case] canonical: Option<&str>) {
        assert_eq!(
            Quantity::parse(text).map(Quantity::canonical).as_deref(),
            canonical
        );
    }
}
