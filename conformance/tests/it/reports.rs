//! Reports for machines.

use crate::support::{run, scenarios};

#[test]
fn json_and_junit() {
    let folder = std::env::temp_dir().join(format!("seatrial-reports-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut options = scenarios("specified-delete-label");
    options.json = Some(folder.join("report.json"));
    options.junit = Some(folder.join("report.xml"));
    let (totals, text) = run(&options);
    assert_eq!(totals.expect("a run").passed, 1);
    assert_eq!(text.lines().last(), Some("1 passed, 0 failed, 0 skipped"));
    let json = std::fs::read_to_string(folder.join("report.json")).expect("a report");
    let json: shared_json::Value = shared_json::from_str(&json).expect("JSON");
    assert_eq!(json["passed"], 1);
    let scenario = &json["scenarios"][0];
    assert_eq!(
        (&scenario["name"], &scenario["status"]),
        (&"specified-delete-label".into(), &"passed".into())
    );
    assert!(scenario["seconds_virtual"].as_f64() > Some(10.0));
    assert_eq!(scenario["steps"][0]["name"], "create");
    let xml = std::fs::read_to_string(folder.join("report.xml")).expect("a report");
    assert!(
        xml.contains("<testsuite name=\"specified-delete-label\"") && xml.contains("name=\"create\""),
        "{xml}"
    );
    std::fs::remove_dir_all(&folder).expect("to clean up");
}
