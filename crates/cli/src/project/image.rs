//! `windlass image`: an operator as an OCI image archive, without Docker.

use crate::cargo_project::Project;
use anyhow::{Context, bail};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use windlass_sdk::image::archive;

pub(crate) const EXAMPLES: &str = "\
Examples:
  windlass image
      the project here, linked whole, as NAME.tar
  windlass image --name registry.example.com/shop:1.2 --output shop.tar
      skopeo copy oci-archive:shop.tar docker://registry.example.com/shop:1.2 brings it there; kind load image-archive shop.tar,
      ctr images import shop.tar and podman load --input shop.tar read it too

The image has one file, the program, and runs it as user 65532. The same program gives the same bytes.";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// A statically linked binary [default: that of the project in this folder, built so]
    #[arg(long, value_name = "FILE")]
    operator: Option<PathBuf>,

    /// The image's name [default: NAME:latest]
    #[arg(long, value_name = "IMAGE")]
    name: Option<String>,

    /// The archive to write [default: NAME.tar]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Options {
    pub(crate) async fn run(&self) -> anyhow::Result<ExitCode> {
        let program = match &self.operator {
            Some(program) => program.clone(),
            None => Project::find()
                .context("which operator? --operator names its binary")?
                .build_with(&["--release", "--target", &host()?], &whole())?,
        };
        let file_name =
            program.file_name().and_then(|name| name.to_str()).context("the program has no name")?;
        let name = self.name.clone().unwrap_or_else(|| format!("{file_name}:latest"));
        let output = self.output.clone().unwrap_or_else(|| PathBuf::from(format!("{file_name}.tar")));
        let bytes = std::fs::read(&program).with_context(|| format!("cannot read {}", program.display()))?;
        let image = match archive(&name, &bytes) {
            Ok(image) => image,
            Err(error) => bail!("{}: {error}", program.display()),
        };
        // Whole or not at all.
        let beside = output.with_extension("partial");
        let written = std::fs::write(&beside, &image).and_then(|()| std::fs::rename(&beside, &output));
        written.with_context(|| format!("cannot write {}", output.display()))?;
        println!("{}: {name}, {:.1} MB", output.display(), image.len() as f64 / 1e6);
        Ok(ExitCode::SUCCESS)
    }
}

/// The settings that make cargo link statically, without debug information.
fn whole() -> Vec<(String, String)> {
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    let flags = format!("{flags} -C target-feature=+crt-static").trim().to_owned();
    vec![("RUSTFLAGS".to_owned(), flags), ("CARGO_PROFILE_RELEASE_STRIP".to_owned(), "symbols".to_owned())]
}

/// The machine that this one's compiler builds for. It is named, so that the flags count for the program alone and not for what
/// runs while it is built.
fn host() -> anyhow::Result<String> {
    let said = Command::new("rustc").arg("-vV").output().context("cannot run rustc")?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let host =
        said.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc does not say its host")?;
    Ok(host.to_owned())
}
