package appserver

import "github.com/codexmcp/codexmcp/codexserver/internal/box"

// Main must be the first statement of the program's main function, and of TestMain in a
// test. On Linux, [New] fails without it. The app-server and all that it starts end with the
// program, however that ends. Main of package native does the same; call one of the two.
func Main() { box.Main() }
