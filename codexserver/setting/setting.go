// Package setting has what users set for the server and its engines. A setting stands here once,
// with its meaning and its default: the options of packages codexserver and native have these
// types, and codex-mcp reads them from codex-mcp.toml, with the keys that the tags name.
package setting

import "time"

// DefaultStall is how long a model may be silent before it counts as stuck.
const DefaultStall = 5 * time.Minute
