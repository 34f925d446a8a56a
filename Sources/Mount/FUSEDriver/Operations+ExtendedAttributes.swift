import CFUSE
import Glibc
import PreferenceTree
import SystemCalls

extension Operations {
  static func addExtendedAttributes(_ table: inout fuse_lowlevel_ops) {
    table.getxattr = { request, node, name, room in
      answerWithDriver(request) { driver, _ throws(TreeError) in
        let (node, name) = (NodeID(rawValue: node), text(name))
        let value =
          node == .root && name == statusAttribute
          ? try driver.forest.status(most: longestAttribute)
          : try driver.forest[node].extendedAttribute(node, name)
        return .attribute(value, room: room)
      }
    }
    table.listxattr = { request, node, room in
      answer(request, node) { tree, node throws(TreeError) in
        .attribute(try tree.extendedAttributeNames(node), room: room)
      }
    }
    table.setxattr = { request, node, name, value, count, _ in
      answer(request, node) { tree, node throws(TreeError) in
        let bytes = Array(UnsafeRawBufferPointer(start: value, count: count))
        try tree.setExtendedAttribute(node, text(name), bytes, now: .now)
        return .done
      }
    }
    table.removexattr = { request, node, name in
      answer(request, node) { tree, node throws(TreeError) in
        try tree.removeExtendedAttribute(node, text(name))
        return .done
      }
    }
  }
}

/// The extended attribute of the mount point that has the text of `status.json`; listxattr(2) does
/// not show it.
public let statusAttribute = "user.prefs.status"

/// The most bytes that the kernel lets an extended attribute have (XATTR_SIZE_MAX).
private let longestAttribute = 1 << 16

private func text(_ name: UnsafePointer<CChar>?) -> String {
  String(decoding: bytes(name), as: UTF8.self)
}
