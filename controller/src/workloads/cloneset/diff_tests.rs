use super::*;

fn numbers<const N: usize>(text: &str) -> [i32; N] {
    let list: Vec<i32> = text.split(' ').map(|number| number.parse().unwrap()).collect();
    list.try_into().unwrap()
}

fn counts(text: &str) -> Counts {
    let [available, unavailable, to_delete, preparing_delete] = numbers(text);
    Counts {
        preparing_delete,
        to_delete,
        unavailable,
        available,
    }
}

/// The table was worked out from the behaviour map of OpenKruise, not with this code.
#[test]
fn table() {
    let mut rows = 0;
    for line in include_str!("../../../tests/data/diff.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let columns: Vec<&str> = line.split('\t').collect();
        let [
            replicas,
            partition,
            max_surge,
            max_unavailable,
            scale_max_unavailable,
        ] = numbers(columns[1]);
        let settings = Settings {
            replicas,
            partition,
            max_surge,
            max_unavailable,
            scale_max_unavailable,
            min_ready_s: 0,
            paused: false,
        };
        let situation = Situation {
            new: counts(columns[2]),
            old: counts(columns[3]),
            same_revision: columns[4].contains("same"),
            rollback: columns[4].contains("rollback"),
            exclude_preparing_delete: columns[4].contains("excl"),
        };
        let [scale_up, scale_up_old, scale_up_limit] = numbers(columns[5]);
        let [scale_down, scale_down_old, delete_ready_limit] = numbers(columns[6]);
        let [update, update_max_unavailable] = numbers(columns[7]);
        let [surge, surge_old] = numbers(columns[8]);
        let want = Diff {
            scale_up,
            scale_up_old,
            scale_up_limit,
            scale_down,
            scale_down_old,
            delete_ready_limit,
            update,
            update_max_unavailable,
            surge,
            surge_old,
        };
        assert_eq!(diff(&settings, &situation), want, "{}", columns[0]);
        rows += 1;
    }
    assert!(rows >= 100, "{rows}");
}
