// Package config reads what users set: Codex's own keys in
// $CODEX_HOME/config.toml ([Load]) and ours in codex-mcp.toml beside it
// ([LoadSettings]).
//
// Both are read in layers, later ones over earlier ones:
//
//	defaults < file < profile < -c key=value < a call's config < a call's arguments
//
// A table is merged key by key, every other value is replaced. All layers meet
// in one JSON document that is decoded strictly, so that a value of the wrong
// type is an error that names its key, wherever it came from.
package config
