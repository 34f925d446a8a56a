import Foundation
import Testing

extension Sandbox {
  /// A text that the screen must show (empty: any), and the keys that are typed then, as tmux(1)
  /// names them.
  public typealias Step = (screen: String, keys: String)

  /// Starts the command in a terminal of its own (tmux), takes the steps, and waits for its end.
  /// - Parameters:
  ///   - directory: where the command is started, as bash reads it.
  ///   - path: directories that are searched for programs before the system's.
  public func type(
    _ command: String, in directory: String = "$M/d", path: String = "", _ steps: [Step]
  ) {
    let tmux = "tmux -f /dev/null -S \(root)/tmux"
    let directories = path.isEmpty ? "/usr/bin:/bin" : "\(path):/usr/bin:/bin"
    // tmux's server goes on in the background, so it must not hold the tests' descriptors.
    shell(
      "for fd in /proc/self/fd/*; do fd=${fd##*/}; [ $fd -le 2 ] || eval \"exec $fd>&-\"; done; "
        + "env -u TMUX TERM=xterm PATH=\(directories) \(tmux) new-session -d -x 100 -y 30 "
        + "'cd '\(directory)'; exec \(command)' < /dev/null > /dev/null 2>&1")
    for step in steps {
      var screen = ""
      for _ in 0..<100 {
        screen = shell("\(tmux) capture-pane -p 2> /dev/null").output
        if shows(screen, step.screen) { break }
        usleep(50_000)
      }
      #expect(shows(screen, step.screen), "\(command): \(step.screen) is not in \(screen)")
      shell("\(tmux) send-keys \(step.keys)")
    }
    for _ in 0..<100 {
      if shell("\(tmux) has-session 2> /dev/null").status != 0 { break }
      usleep(50_000)
    }
    shell("\(tmux) kill-server 2> /dev/null; true")
  }

  private func shows(_ screen: String, _ text: String) -> Bool {
    text.isEmpty || screen.contains(text)
  }
}
