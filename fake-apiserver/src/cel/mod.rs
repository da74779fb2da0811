//! Expressions in CEL, as Kubernetes extends it.

/// Reads an expression; the error says what is wrong with it.
pub(crate) fn compile(expression: &str) -> Result<kube_cel::cel::Program, String> {
    kube_cel::cel::Program::compile(expression).map_err(|error| {
        // The lines that show the place stand one blank further in where the real server prints them.
        format!("compilation failed: {}", error.to_string().replace("\n|", "\n |"))
    })
}
