package native

import "github.com/codexmcp/codexmcp/codexserver/internal/box"

// Main lets engines start your program again, as a launcher of commands. It must be the first statement of your main, and of TestMain in a test. In a
// process that an engine started it does not return; in any other it returns at once. It
// reads no flags and changes nothing in your program.
//
// On Linux, [New] fails without Main: all processes that a command or an MCP server started
// are gone when it ends and when your program ends, however it ends. Guarantees, in the
// package's documentation, describes other systems.
//
// The initialization of your packages also runs in the processes that an engine starts,
// without your program's environment. It should start nothing.
func Main() { box.Main() }
