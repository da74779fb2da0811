//! The file of images that stand for command lines.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

/// A file of images that is not one.
#[derive(Debug, thiserror::Error)]
pub enum RunFileError {
    /// It is not YAML of this form.
    #[error("read the images: {0}")]
    Yaml(String),
    /// An image has no command.
    #[error("the image \"{0}\" has no command")]
    NoCommand(String),
}

/// The images that stand for command lines of this machine.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunFile {
    images: Vec<RunImage>,
}

/// An image, or all images whose references begin alike.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunImage {
    /// The reference as pods have it; with `*` at its end, all that begin so.
    name: String,
    /// The first word of the container's `command`, if the image has several programs.
    #[serde(default)]
    entrypoint: Option<String>,
    /// The program and its first words.
    pub command: Vec<String>,
    /// Further words where the container has no `args`.
    #[serde(default)]
    pub args: Vec<String>,
    /// Last words, behind those of the container.
    #[serde(default)]
    append: Vec<String>,
    /// Ports of the container, and the ports of this machine on which the program answers for them; 0 takes a free one.
    #[serde(default)]
    pub ports: BTreeMap<u16, u16>,
    /// Variables, in place of the container's of the same name.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where the program runs; by default where the server does.
    #[serde(default)]
    pub directory: Option<PathBuf>,
}

impl RunFile {
    /// Reads a file of images.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// let file = fake_apiserver::serve::RunFile::from_yaml("images:\n- {name: 'example.com/operator:*', command: [./operator], ports: {9443: 0}}\n");
    /// assert!(file.is_ok());
    /// assert!(fake_apiserver::serve::RunFile::from_yaml("images: [{name: a, command: []}]").is_err());
    /// # }
    /// ```
    ///
    /// # Errors
    /// If it is no such file.
    #[cfg(feature = "cli")]
    pub fn from_yaml(text: &str) -> Result<Self, RunFileError> {
        let read: Result<Self, _> = serde_saphyr::from_str(text);
        let file = read.map_err(|error| RunFileError::Yaml(error.to_string()))?;
        match file.images.iter().find(|image| image.command.is_empty()) {
            Some(image) => Err(RunFileError::NoCommand(image.name.clone())),
            None => Ok(file),
        }
    }

    /// The first entry that stands for an image whose container has this `command`.
    pub(super) fn find(&self, image: &str, command: &[String]) -> Option<&RunImage> {
        let is_it = |known: &&RunImage| {
            let is_image = match known.name.strip_suffix('*') {
                Some(begin) => image.starts_with(begin),
                None => image == known.name,
            };
            let entrypoint = known.entrypoint.as_ref();
            is_image && entrypoint.is_none_or(|word| command.first() == Some(word))
        };
        self.images.iter().find(is_it)
    }
}

impl RunImage {
    /// The words of the program: those of the file, then the container's `command` without its first word, which is a path in the
    /// image, then its `args` or the file's, then the file's last words.
    pub(super) fn words(&self, command: &[String], args: &[String]) -> Vec<String> {
        let own = command.iter().skip(1);
        let last = if args.is_empty() { &self.args } else { args };
        let words = self.command.iter().chain(own).chain(last);
        words.chain(&self.append).cloned().collect()
    }
}

/// `text` with `$(NAME)` replaced by a variable, if it is one of these.
pub(super) fn filled(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut out = text.to_owned();
    for (name, value) in variables {
        out = out.replace(&format!("$({name})"), value);
    }
    out
}

#[cfg(all(test, feature = "cli"))]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("images: []", None)]
    #[case("images: [{name: a, command: [x]}]", None)]
    #[case("images: [{name: a, command: []}]", Some("the image \"a\" has no command"))]
    #[case("images: [{name: a}]", Some("read the images: "))]
    #[case("images: [{name: a, command: [x], port: 1}]", Some("read the images: "))]
    #[case(
        "images: [{name: a, command: [x], ports: {70000: 1}}]",
        Some("read the images: ")
    )]
    #[case("image: []", Some("read the images: "))]
    #[case("", Some("read the images: "))]
    fn files(#[case] text: &str, #[case] expected: Option<&str>) {
        let told = RunFile::from_yaml(text).map_err(|error| error.to_string()).err();
        match expected {
            None => assert_eq!(told, None),
            Some(begin) => assert!(
                told.clone().is_some_and(|told| told.starts_with(begin)),
                "{told:?}"
            ),
        }
    }

    #[rstest]
    #[case("a:1", "", Some("one"))]
    #[case("a:2", "", Some("any"))]
    #[case("b:1", "", None)]
    #[case("c:1", "/second", Some("second"))]
    #[case("c:1", "/first", None)]
    #[case("c:1", "", None)]
    fn images(#[case] image: &str, #[case] word: &str, #[case] expected: Option<&str>) {
        let text = "images: [{name: 'a:1', command: [one]}, {name: 'a:*', command: [any]}, \
                    {name: 'c:*', entrypoint: /second, command: [second]}]";
        let file = RunFile::from_yaml(text).expect("a file");
        let command: Vec<String> = word.split_whitespace().map(str::to_owned).collect();
        let found = file.find(image, &command);
        assert_eq!(found.map(|image| image.command[0].as_str()), expected);
    }

    #[rstest]
    #[case(&[], &[], "run -x d z")]
    #[case(&[], &["a"], "run -x a z")]
    #[case(&["/bin/in-image"], &[], "run -x d z")]
    #[case(&["/bin/in-image", "c"], &["a"], "run -x c a z")]
    fn command_lines(#[case] command: &[&str], #[case] args: &[&str], #[case] expected: &str) {
        let file = RunFile::from_yaml("images: [{name: i, command: [run, -x], args: [d], append: [z]}]")
            .expect("a file");
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let words = file
            .find("i", &[])
            .expect("the image")
            .words(&owned(command), &owned(args));
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn variables_are_filled_in() {
        let variables = BTreeMap::from([("PORT_80".to_owned(), "8080".to_owned())]);
        assert_eq!(
            filled("--port=$(PORT_80) $(OTHER)", &variables),
            "--port=8080 $(OTHER)"
        );
    }
}
