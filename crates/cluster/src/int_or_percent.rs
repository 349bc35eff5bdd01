//! `maxSurge` and `maxUnavailable`: numbers or percentages of the desired replicas.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// The value, or the percentage of `total`, rounded up or down.
pub(crate) fn scaled(value: &IntOrString, total: i32, up: bool) -> i32 {
    match value {
        IntOrString::Int(number) => *number,
        IntOrString::String(text) => {
            let percent: i64 = text.strip_suffix('%').and_then(|text| text.parse().ok()).unwrap_or_default();
            let hundredfold = percent * i64::from(total);
            let whole = if up { (hundredfold + 99).div_euclid(100) } else { hundredfold.div_euclid(100) };
            i32::try_from(whole).unwrap_or(i32::MAX)
        }
    }
}

/// `maxSurge` and `maxUnavailable` as numbers. One of the two is always at least one, or nothing could ever be replaced.
pub(crate) fn resolve_fenceposts(
    surge: Option<&IntOrString>,
    unavailable: Option<&IntOrString>,
    wanted: i32,
) -> (i32, i32) {
    let surge = surge.map_or(0, |surge| scaled(surge, wanted, true));
    let unavailable = unavailable.map_or(0, |unavailable| scaled(unavailable, wanted, false));
    match (surge, unavailable) {
        (0, 0) => (0, 1),
        both => both,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surge_is_rounded_up_and_unavailable_down() {
        let percent = |text: &str| IntOrString::String(text.to_owned());
        let quarter = percent("25%");
        assert_eq!(resolve_fenceposts(Some(&quarter), Some(&quarter), 10), (3, 2));
        assert_eq!(resolve_fenceposts(Some(&quarter), Some(&quarter), 1), (1, 0));
        assert_eq!(
            resolve_fenceposts(Some(&IntOrString::Int(0)), Some(&quarter), 1),
            (0, 1),
            "or nothing could move"
        );
        assert_eq!(resolve_fenceposts(Some(&IntOrString::Int(2)), None, 1), (2, 0));
        assert_eq!(scaled(&percent("nonsense"), 10, true), 0);
    }
}
