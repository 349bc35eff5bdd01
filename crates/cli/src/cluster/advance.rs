//! `windlass cluster advance`: advances the clock of a cluster that was started with `--clock`.

use super::control;
use super::find::Selection;
use anyhow::Context;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The time to advance by, such as 90s, 5m, 1h30m or 2d; every timer due on the way fires
    #[arg(value_name = "DURATION", value_parser = seconds)]
    duration: u64,

    #[command(flatten)]
    selection: Selection,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let found = options.selection.find()?;
    let now = control::ask(&found.folder, &format!("advance {}", options.duration))?;
    println!("it is {now}");
    Ok(ExitCode::SUCCESS)
}

/// `1h30m` as seconds.
fn seconds(text: &str) -> anyhow::Result<u64> {
    let wrong = || format!("{text:?} is no duration such as 90s, 5m, 1h30m or 2d");
    let (mut total, mut number) = (0_u64, None::<u64>);
    for character in text.chars() {
        if let Some(digit) = character.to_digit(10) {
            let grown =
                number.unwrap_or_default().checked_mul(10).and_then(|grown| grown.checked_add(digit.into()));
            number = Some(grown.with_context(wrong)?);
            continue;
        }
        let unit = match character {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            _ => anyhow::bail!(wrong()),
        };
        let part = number.take().and_then(|number| number.checked_mul(unit));
        total = part.and_then(|part| total.checked_add(part)).with_context(wrong)?;
    }
    if number.is_some() || text.is_empty() {
        anyhow::bail!(wrong());
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_people_say_them() {
        assert_eq!(seconds("90s").unwrap(), 90);
        assert_eq!(seconds("1h30m").unwrap(), 5400);
        assert_eq!(seconds("2d").unwrap(), 172_800);
        for wrong in ["", "5", "h", "-1s", "1w", "99999999999999999999s", "9999999999999999999d", "1.5h"] {
            assert!(seconds(wrong).unwrap_err().to_string().contains("no duration"), "{wrong}");
        }
    }
}
