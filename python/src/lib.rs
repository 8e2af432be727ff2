//! The extension module `zerohop._zerohop`: the library's client and store, with the GIL released wherever they may wait. The names of
//! commands, and what tells them apart for asyncio, are Python's (`zerohop/_commands.py`).

mod batch;
mod client;
mod conditions;
mod entries;
mod errors;
mod owned;
mod pending;
mod replies;
mod request;
mod signals;
mod store;
mod tasks;

use pyo3::prelude::*;

#[cfg(panic = "abort")]
compile_error!("a panic has to become an exception of Python: build with panic = \"unwind\"");

/// The client and the embedded store of Zerohop, as `zerohop` and `zerohop.aio` use them.
#[pymodule]
fn _zerohop(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<client::Connection>()?;
    module.add_class::<pending::Pending>()?;
    module.add_class::<tasks::Tasks>()?;
    module.add_class::<store::Store>()?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<entries::Entries>()?;
    Ok(())
}
