import SystemCalls
import Testing

@testable import FUSEDriver

@Suite("Why a mount is refused") struct MountObstacleTests {
  static let cases: [(obstacle: MountObstacle, part: String?)] = [
    (MountObstacle(), nil),
    (MountObstacle(device: .noSuchFile, mayMount: true), "modprobe fuse"),
    (MountObstacle(device: .permissionDenied), "cannot be opened"),
    (MountObstacle(mayMount: true, isConfined: true, helper: .missing), nil),
    (MountObstacle(isConfined: true), "NoNewPrivileges="),
    (MountObstacle(helper: .missing), "package fuse3"),
    (MountObstacle(helper: .powerless(path: "/f")), "/f is not set-uid root"),
    (MountObstacle(isConfined: true, isBounded: true), "--cap-add SYS_ADMIN"),
  ]

  @Test("the sentence names what is in the way", arguments: cases)
  func sentences(_ obstacle: MountObstacle, _ part: String?) {
    let sentence = obstacle.sentence
    if let part {
      #expect(sentence?.contains(part) == true, "\(sentence ?? "none")")
    } else {
      #expect(sentence == nil)
    }
  }

  @Test("fields of a process's status are read, and lines that are none are left out")
  func fields() {
    let fields = MountObstacle.fields(of: "Name:\tcat\nNoNewPrivs:\t1\nnonsense\n")
    #expect(fields == ["Name": "cat", "NoNewPrivs": "1"])
  }
}
