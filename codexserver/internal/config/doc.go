// Package config reads what users set: Codex's own keys in $CODEX_HOME/config.toml
// ([Load]) and ours in codex-mcp.toml next to it ([LoadSettings]).
//
// Both are read in layers, later ones over earlier ones:
//
//	defaults < file < profile < -c key=value < a call's config < a call's arguments
//
// A table is merged key by key; every other value is replaced. The merged layers are
// decoded strictly: a value of the wrong type in any layer is an error that names its key.
//
// The user writes the files and -c. A call's config is mostly written by a model.
// [CallKeys] removes from it everything that could name a program, a provider or a key,
// before an engine sees it.
package config
