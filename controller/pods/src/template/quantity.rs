//! Quantities (`500m`, `1Gi`) in the one form in which Kubernetes writes each of them.

use thiserror::Error;

/// The text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QuantityError {
    /// Not a number with a known suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
}

/// Nanos in one.
const NANO: i128 = 1_000_000_000;
const BINARY: [(&str, u32); 6] = [("Ki", 1), ("Mi", 2), ("Gi", 3), ("Ti", 4), ("Pi", 5), ("Ei", 6)];
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

/// Brings `text` into the form that apimachinery's `Quantity` writes: no fraction, the largest suffix of its family that
/// allows this, and nothing finer than a nano (rounded up).
///
/// # Errors
/// When `text` is not a quantity. Numbers too large for 128 bits of nanos are given back as they are.
pub fn canonical_quantity(text: &str) -> Result<String, QuantityError> {
    let text = text.trim();
    let split = text
        .char_indices()
        .find(|(at, c)| !(c.is_ascii_digit() || *c == '.' || (*at == 0 && (*c == '+' || *c == '-'))))
        .map_or(text.len(), |(at, _)| at);
    let (number, suffix) = text.split_at(split);
    let (negative, digits) = match number.as_bytes().first() {
        Some(b'-') => (true, &number[1..]),
        Some(b'+') => (false, &number[1..]),
        _ => (false, number),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(QuantityError::Format);
    }
    let family = family(suffix).ok_or(QuantityError::Format)?;
    let Some(nanos) = nanos(whole, fraction, family) else {
        return Ok(text.to_owned());
    };
    let signed = if negative { -nanos } else { nanos };
    Ok(write(signed, family))
}

#[derive(Clone, Copy)]
enum Family {
    Decimal(i32),
    Binary(u32),
    Exponent(i32),
}

fn family(suffix: &str) -> Option<Family> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some(Family::Decimal(*exponent));
    }
    if let Some((_, power)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Some(Family::Binary(*power));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    exponent.parse().ok().map(Family::Exponent)
}

/// The absolute value in nanos, rounded up; none when it does not fit.
fn nanos(whole: &str, fraction: &str, family: Family) -> Option<i128> {
    let digits: i128 = match format!("{whole}{fraction}").trim_start_matches('0') {
        "" => 0,
        digits => digits.parse().ok()?,
    };
    let scale = -i32::try_from(fraction.len()).ok()?;
    let (factor, exponent) = match family {
        Family::Decimal(exponent) | Family::Exponent(exponent) => (1, exponent),
        Family::Binary(power) => (1024_i128.checked_pow(power)?, 0),
    };
    let power = 9_i32.checked_add(exponent)?.checked_add(scale)?;
    let value = digits.checked_mul(factor)?;
    let ten = 10_i128.checked_pow(power.unsigned_abs());
    if power >= 0 {
        return if value == 0 {
            Some(0)
        } else {
            value.checked_mul(ten?)
        };
    }
    Some(match ten {
        Some(ten) => value / ten + i128::from(value % ten != 0),
        None => i128::from(value != 0),
    })
}

fn write(nanos: i128, family: Family) -> String {
    if nanos == 0 {
        return "0".to_owned();
    }
    if matches!(family, Family::Binary(_)) && nanos.abs() >= 1024 * NANO {
        // Fractions of a byte are rounded up.
        let mut value = nanos / NANO + i128::from(nanos % NANO > 0);
        let mut power = 0;
        while value % 1024 == 0 && power < BINARY.len() {
            value /= 1024;
            power += 1;
        }
        let suffix = power
            .checked_sub(1)
            .and_then(|at| BINARY.get(at))
            .map_or("", |(name, _)| name);
        return format!("{value}{suffix}");
    }
    let mut value = nanos;
    let mut exponent = -9;
    while value % 1000 == 0 && exponent < 18 {
        value /= 1000;
        exponent += 3;
    }
    if matches!(family, Family::Exponent(_)) {
        return if exponent == 0 {
            value.to_string()
        } else {
            format!("{value}e{exponent}")
        };
    }
    let suffix = DECIMAL
        .iter()
        .find(|(_, e)| *e == exponent)
        .map_or("", |(name, _)| name);
    format!("{value}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("1", "1")]
    #[case("0", "0")]
    #[case("0m", "0")]
    #[case("0.5", "500m")]
    #[case(".5", "500m")]
    #[case("1.", "1")]
    #[case("1000m", "1")]
    #[case("1500m", "1500m")]
    #[case("1000", "1k")]
    #[case("2000", "2k")]
    #[case("2048", "2048")]
    #[case("100000", "100k")]
    #[case("1024Mi", "1Gi")]
    #[case("1Gi", "1Gi")]
    #[case("1.5Gi", "1536Mi")]
    #[case("0.5Ki", "512")]
    #[case("1023Ki", "1023Ki")]
    #[case("1e3", "1e3")]
    #[case("12e2", "1200")]
    #[case("1E", "1E")]
    #[case("0.1n", "1n")]
    #[case("-1.5", "-1500m")]
    #[case("+5", "5")]
    #[case(" 5 ", "5")]
    #[case("100G", "100G")]
    fn is_written_in_one_form(#[case] text: &str, #[case] want: &str) {
        assert_eq!(canonical_quantity(text).as_deref(), Ok(want));
        assert_eq!(canonical_quantity(want).as_deref(), Ok(want), "a fixed point");
    }

    #[rstest]
    #[case("abc")]
    #[case("")]
    #[case("1.2.3")]
    #[case("1Kb")]
    #[case("1e")]
    #[case("--1")]
    fn refuses(#[case] text: &str) {
        assert_eq!(canonical_quantity(text), Err(QuantityError::Format));
    }
}
