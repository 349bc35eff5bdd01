//! A minimal OCI image of an operator's program, as an archive that container tools load: the program, others that it brings
//! along, and nothing else. The same programs give the same bytes.
//!
//! The programs must be statically linked, which their own ELF headers say. The archive has no timestamps and a fixed order,
//! hence the same bytes.

mod elf;

use elf::Machine;
use flate2::Compression;
use flate2::write::GzEncoder;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::io::Write;
use tar::{Builder, Header};

/// As whom it runs: what everybody takes for a user that has no rights.
const USER: &str = "65532:65532";
/// Where the program is in the image.
const PROGRAM: &str = "operator";

/// Where others are, which is its `PATH`.
const OTHERS: &str = "bin";

/// A program beside the operator's, such as one that an init container copies into other pods.
#[derive(Debug, Clone, Copy)]
pub struct Other<'a> {
    /// Its file name.
    pub name: &'a str,
    /// The program.
    pub program: &'a [u8],
}

/// A program that no image can be made of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// It is no program for Linux.
    #[error("it is no 64-bit program for Linux")]
    NoProgram,
    /// It is for a machine that images have no name for here.
    #[error("it is for a machine of an unknown sort ({0})")]
    UnknownMachine(u16),
    /// Another of the image is for another machine.
    #[error("{0} is for another machine than the operator")]
    AnotherMachine(String),
    /// Of one beside the operator's.
    #[error("{0}: {1}")]
    Other(String, Box<ImageError>),
    /// It needs files that are not in it.
    #[error(
        "it needs libraries of the machine: the image would lack {0} and what that loads. Build it whole, with \
         RUSTFLAGS=\"-C target-feature=+crt-static\" and a --target, or for a musl target such as x86_64-unknown-linux-musl"
    )]
    NeedsLibraries(String),
}

/// The archive of an image under this name, such as `registry.example.com/shop:1.2`.
///
/// # Errors
/// When a program cannot run alone in an image.
pub fn archive(name: &str, program: &[u8], others: &[Other<'_>]) -> Result<Vec<u8>, ImageError> {
    let Machine { architecture } = elf::read(program)?;
    let mut programs = vec![(PROGRAM.to_owned(), 0o755, program)];
    for Other { name, program } in others {
        let machine =
            elf::read(program).map_err(|error| ImageError::Other((*name).to_owned(), Box::new(error)))?;
        if machine.architecture != architecture {
            return Err(ImageError::AnotherMachine((*name).to_owned()));
        }
        programs.push((format!("{OTHERS}/{name}"), 0o755, program));
    }
    let layer = tar_archive(&programs);
    let packed = packed(&layer);
    let config = text(&json!({
        "architecture": architecture, "os": "linux",
        "config": {
            "User": USER, "Entrypoint": [format!("/{PROGRAM}")], "WorkingDir": "/", "Env": [format!("PATH=/{OTHERS}")],
        },
        "rootfs": { "type": "layers", "diff_ids": [hash(&layer)] },
        "history": [{ "created_by": "windlass image" }],
    }));
    let manifest = text(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": described("application/vnd.oci.image.config.v1+json", &config),
        "layers": [described("application/vnd.oci.image.layer.v1.tar+gzip", &packed)],
    }));
    let mut one = described("application/vnd.oci.image.manifest.v1+json", &manifest);
    one["platform"] = json!({ "architecture": architecture, "os": "linux" });
    // By the one name tools that follow the specification call it, by the other containerd.
    let tag = name.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')).map_or("latest", |(_, tag)| tag);
    one["annotations"] =
        json!({ "org.opencontainers.image.ref.name": tag, "io.containerd.image.name": name });
    let index = text(&json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [one],
    }));
    let layout = text(&json!({ "imageLayoutVersion": "1.0.0" }));
    let mut blobs = [config, manifest, packed];
    blobs.sort_by_cached_key(|blob| hash(blob));
    let mut files: Vec<(String, u32, &[u8])> =
        vec![("oci-layout".to_owned(), 0o644, &layout), ("index.json".to_owned(), 0o644, &index)];
    files.extend(blobs.iter().map(|blob| {
        (format!("blobs/sha256/{}", hash(blob).trim_start_matches("sha256:")), 0o644, blob.as_slice())
    }));
    Ok(tar_archive(&files))
}

/// An archive of files by path and mode. All belong to root and are from 1970, so that equal files give equal bytes.
fn tar_archive(files: &[(String, u32, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (path, mode, contents) in files {
        let mut header = Header::new_ustar();
        header.set_size(contents.len() as u64);
        header.set_mode(*mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        let appended = builder.append_data(&mut header, path, *contents);
        appended.expect("a Vec takes everything, and the paths are short and relative");
    }
    builder.into_inner().expect("a Vec takes everything")
}

fn text(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn described(media_type: &str, part: &[u8]) -> Value {
    json!({ "mediaType": media_type, "digest": hash(part), "size": part.len() })
}

fn hash(part: &[u8]) -> String {
    let hex: String = digest(&SHA256, part).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// By gzip, without a time in its header.
fn packed(layer: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Memory takes whatever is written to it.
    let _ = encoder.write_all(layer);
    encoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::collections::BTreeMap;
    use std::io::Read;

    #[test]
    fn the_same_program_gives_the_same_bytes() {
        let program = elf::tests::program(0x3e, None);
        let first = archive("registry.example.com:5000/shop", &program, &[]).unwrap();
        assert_eq!(first, archive("registry.example.com:5000/shop", &program, &[]).unwrap());
        let text = String::from_utf8_lossy(&first);
        assert!(text.contains("\"org.opencontainers.image.ref.name\":\"latest\""), "a port is no tag");
        assert!(text.contains("65532") && text.contains("amd64"));
        assert_eq!(first.len() % 512, 0);
    }

    /// The files of an archive, by name.
    fn files(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let (mut at, mut found) = (0, BTreeMap::new());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_matches('\0').to_owned();
        while archive[at] != 0 {
            let header = &archive[at..at + 512];
            let size = usize::from_str_radix(&text(&header[124..136]), 8).unwrap();
            found.insert(text(&header[..100]), archive[at + 512..at + 512 + size].to_vec());
            at += 512 + size.next_multiple_of(512);
        }
        found
    }

    #[test]
    fn read_back_each_part_is_what_the_one_before_says() {
        let program = elf::tests::program(0xb7, None);
        let other = elf::tests::program(0xb7, None);
        let image =
            files(&archive("shop:1.2", &program, &[Other { name: "till", program: &other }]).unwrap());
        let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
        let part = |said: &Value| {
            let bytes = &image[&format!("blobs/{}", said["digest"].as_str().unwrap().replace(':', "/"))];
            assert_eq!(
                (hash(bytes).as_str(), bytes.len() as u64),
                (said["digest"].as_str().unwrap(), said["size"].as_u64().unwrap())
            );
            bytes
        };
        assert_eq!(json(&image["oci-layout"])["imageLayoutVersion"], "1.0.0");
        let index = json(&image["index.json"]);
        let manifest = json(part(&index["manifests"][0]));
        let config = json(part(&manifest["config"]));
        let mut layer = Vec::new();
        GzDecoder::new(part(&manifest["layers"][0]).as_slice()).read_to_end(&mut layer).unwrap();
        assert_eq!(config["rootfs"]["diff_ids"][0], hash(&layer));
        assert_eq!(config["architecture"], "arm64");
        assert_eq!(
            (&config["config"]["User"], &config["config"]["Entrypoint"][0]),
            (&json!(USER), &json!("/operator"))
        );
        assert_eq!(config["config"]["Env"][0], "PATH=/bin");
        assert_eq!(
            files(&layer),
            BTreeMap::from([(PROGRAM.to_owned(), program), ("bin/till".to_owned(), other)])
        );
        assert!(layer.starts_with(b"operator\0") && layer[100..].starts_with(b"0000755"), "all may run it");
        assert_eq!(image.len(), 5, "nothing else is in it");
    }

    #[test]
    fn what_cannot_run_alone_is_refused() {
        assert_eq!(archive("a", b"#!/bin/sh\n", &[]), Err(ImageError::NoProgram));
        let linked = elf::tests::program(0x3e, Some("/lib64/ld-linux-x86-64.so.2"));
        assert_eq!(
            archive("a", &linked, &[]),
            Err(ImageError::NeedsLibraries("/lib64/ld-linux-x86-64.so.2".into()))
        );
        assert_eq!(archive("a", &elf::tests::program(1, None), &[]), Err(ImageError::UnknownMachine(1)));
        let program = elf::tests::program(0x3e, None);
        let refused = archive("a", &program, &[Other { name: "till", program: &linked }]).unwrap_err();
        assert!(refused.to_string().starts_with("till: it needs libraries"), "{refused}");
        let foreign = elf::tests::program(0xb7, None);
        assert_eq!(
            archive("a", &program, &[Other { name: "till", program: &foreign }]),
            Err(ImageError::AnotherMachine("till".into()))
        );
    }
}
