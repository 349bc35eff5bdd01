//! `windlass image`: an operator as an OCI image archive, without Docker.

use crate::cargo_project::Project;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use windlass_sdk::image::{Other, archive};

pub(crate) const EXAMPLES: &str = "\
Examples:
  windlass image
      the project here, linked whole, as NAME.tar
  windlass image --name registry.example.com/shop:1.2 --output shop.tar
      skopeo copy oci-archive:shop.tar docker://registry.example.com/shop:1.2 brings it there; kind load image-archive shop.tar,
      ctr images import shop.tar and podman load --input shop.tar read it too

  windlass image --operator target/x86_64-unknown-linux-musl/release/shop --with target/x86_64-unknown-linux-musl/release/till
      two programs: init containers that run `till install /there` bring the second into other pods

The image has the program and what --with names, and runs the program as user 65532. The same programs give the same bytes.";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// A statically linked binary [default: that of the project in this folder, built so]
    #[arg(long, value_name = "FILE")]
    operator: Option<PathBuf>,

    /// Another statically linked binary, which is in the image's PATH; may be given more than once
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,

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
        let file_name = file_name_of(&program)?;
        let name = self.name.clone().unwrap_or_else(|| format!("{file_name}:latest"));
        let output = self.output.clone().unwrap_or_else(|| PathBuf::from(format!("{file_name}.tar")));
        let read =
            |path: &Path| std::fs::read(path).with_context(|| format!("cannot read {}", path.display()));
        let bytes = read(&program)?;
        let others = self.with.iter().map(|path| Ok((file_name_of(path)?, read(path)?)));
        let others = others.collect::<anyhow::Result<Vec<_>>>()?;
        let others: Vec<Other<'_>> = others.iter().map(|(name, program)| Other { name, program }).collect();
        let image = match archive(&name, &bytes, &others) {
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

fn file_name_of(program: &Path) -> anyhow::Result<&str> {
    let name = program.file_name().and_then(|name| name.to_str());
    name.with_context(|| format!("{} is no program's name", program.display()))
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
