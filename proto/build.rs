//! Generates the wire types and gRPC stubs. The `.proto` files are compiled in Rust, so no `protoc` is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=flott");
    let descriptors = protox::compile(["flott/control/v1/control.proto"], ["."])?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}
