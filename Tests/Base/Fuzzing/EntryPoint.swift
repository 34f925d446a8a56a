import Glibc

/// The function that libFuzzer calls with each input. It gives the input to the target that
/// PREFSFS_FUZZ names, and traps when a promise is broken.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ bytes: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  if let fault = chosen.fault(Array(UnsafeBufferPointer(start: bytes, count: count))) {
    fatalError(fault)
  }
  return 0
}

private let chosen: FuzzTarget = {
  let name = getenv("PREFSFS_FUZZ").map { String(cString: $0) } ?? ""
  guard let target = FuzzTarget(rawValue: name) else {
    fatalError("PREFSFS_FUZZ is \"\(name)\", which is no fuzz target")
  }
  return target
}()
