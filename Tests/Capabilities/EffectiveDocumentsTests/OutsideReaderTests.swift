import EffectiveDocuments
import Foundation
import PropertyList
import Support
import Testing

@Suite("Documents of values, as other programs read them") struct OutsideReaderTests {
  /// Prints each key of a file with its text, and with its elements as a list.
  private static let keyFileReader = #"""
    #include <glib.h>
    #include <stdio.h>
    static void put(const char *text) { fputs(text, stdout); fputc(0, stdout); }
    int main(int count, char **arguments) {
      GError *error = NULL;
      GKeyFile *file = g_key_file_new();
      if (!g_key_file_load_from_file(file, arguments[count - 1], G_KEY_FILE_KEEP_TRANSLATIONS,
                                     &error)) {
        fprintf(stderr, "%s: %s\n", arguments[1], error->message);
        return 1;
      }
      for (char **group = g_key_file_get_groups(file, NULL); *group; group++)
        for (char **key = g_key_file_get_keys(file, *group, NULL, NULL); *key; key++) {
          char *text = g_key_file_get_string(file, *group, *key, NULL);
          char **parts = g_key_file_get_string_list(file, *group, *key, NULL, NULL);
          put(*group), put(*key), put(text ? text : "");
          for (char **part = parts; part && *part; part++) put(*part);
          fputs("\1\1\n", stdout);
        }
      return 0;
    }
    """#

  @Test("jq, plistlib, sh, systemd's rules and GKeyFile read the values of 200 random domains")
  func judged() throws {
    try withSandbox { sandbox in
      let directory = sandbox.root + "/documents"
      let script = Program.suite("documents.py")
      let made = sandbox.shell(
        """
        mkdir \(directory); cd \(directory); python3 \(script) make . 200 1
        cat > keys.c <<'END'
        \(Self.keyFileReader)
        END
        clang -std=gnu11 -Wall -Wextra -Werror -o keys keys.c $(pkg-config --cflags --libs glib-2.0)
        """)
      #expect(made.status == 0, "\(made)")
      for number in 0..<200 {
        let list = try Data(contentsOf: URL(fileURLWithPath: "\(directory)/\(number).list"))
        guard case .dictionary(let values) = try Document.read([UInt8](list)).value else {
          Issue.record("\(number).list is no dictionary")
          return
        }
        for form in DocumentForm.allCases {
          try Data(EffectiveDocument.bytes(of: values, as: form))
            .write(to: URL(fileURLWithPath: "\(directory)/\(number).\(form.rawValue)"))
        }
      }
      let outcome = sandbox.shell("cd \(directory); python3 \(script) judge . 200 1")
      #expect(outcome.output == "" && outcome.status == 0, "\(outcome)")
    }
  }
}
