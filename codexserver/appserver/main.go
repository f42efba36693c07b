package appserver

import "github.com/codexmcp/codexmcp/codexserver/internal/sandbox"

// Main must be the first statement of the program's main function. On Linux the app-server
// and all that it starts then end with the program, however that ends. Main of package
// native does the same; call one of the two.
func Main() { sandbox.Main() }
