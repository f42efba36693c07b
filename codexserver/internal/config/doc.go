// Package config reads what users set: Codex's own keys in $CODEX_HOME/config.toml
// ([Load]) and ours in codex-mcp.toml next to it ([LoadSettings]).
//
// Both are read in layers, later ones over earlier ones:
//
//	defaults < file < profile < -c key=value < a call's config < a call's arguments
//
// A table is merged key by key, every other value is replaced. All layers meet in one
// JSON document that is decoded strictly, so that a value of the wrong type is an error
// that names its key, wherever it came from.
//
// The files and -c are the user's. A call's config is mostly written by a model, and
// [CallKeys] takes out of it, in front of every engine, what could name a program, a
// provider or a key.
package config
