import Glibc
import Synchronization
import Testing

@testable import SystemCalls

@Suite("Facts of processes") struct ProcessFactsTests {
  @Test("a thread is known by its process, program and control group")
  func thread() throws {
    let own = getpid()
    let program = try #require(Files.linkTarget("/proc/self/exe"))
    #expect(ProcessFacts(ofThread: own).program == program)
    let found = Mutex<ProcessFacts?>(nil)
    let worker = try WorkerThread(name: "facts") {
      let thread = Files.linkTarget("/proc/thread-self")?.split(separator: "/").last
      found.withLock { $0 = thread.flatMap { pid_t($0) }.map(ProcessFacts.init(ofThread:)) }
    }
    worker.join()
    let facts = try #require(found.withLock { $0 })
    #expect(facts.process == own && facts.program == program)
    #expect(facts.unit == ProcessFacts(ofThread: own).unit)
  }

  @Test("of a thread that is gone only the number is known")
  func gone() {
    let facts = ProcessFacts(ofThread: pid_t.max)
    #expect(facts.process == pid_t.max && facts.program.isEmpty && facts.unit.isEmpty)
  }

  @Test(
    "the control group is that of the unified hierarchy, or systemd's",
    arguments: [
      ("0::/user.slice/user-1000.slice/session-3.scope\n", "session-3.scope"),
      ("0::/\n", ""),
      ("4:memory:/other\n1:name=systemd:/system.slice/cron.service\n0::/\n", "cron.service"),
      ("4:memory:/other\n0::/a:b/c:d\n1:name=systemd:/x\n", "c:d"),
      ("12:cpu,cpuacct:/x\n", ""),
      ("not a line\n::\n", ""),
      ("", ""),
    ])
  func unit(text: String, unit: String) {
    #expect(ProcessFacts.unit(Array(text.utf8).split(separator: UInt8(ascii: "\n"))) == unit)
  }

  @Test("a process that is stopped, or gone, does not run")
  func running() throws {
    let child = try Child.startApart("sleep", ["60"], streams: [nil, nil, nil])
    #expect(ProcessFacts.isRunning(child) && ProcessFacts.isRunning(getpid()))
    kill(child, SIGSTOP)
    for _ in 0..<1000 where ProcessFacts.isRunning(child) { Instant.sleep(milliseconds: 1) }
    #expect(!ProcessFacts.isRunning(child))
    kill(child, SIGKILL)
    _ = Child.wait(child)
    #expect(!ProcessFacts.isRunning(child))
  }
}
