// Package permission has profiles of permissions: what commands may read and write, by paths, as Codex's
// default_permissions and [permissions.NAME] in config.toml describe it. Package config reads them, package box has
// commands keep them, and what the server itself reads for a model asks [Set.Check].
//
// The rule with the longest path decides about a path. Of rules for the same path Deny wins over Write, and Write over
// Read. A glob only denies, and wins over each of these. What no rule is about is denied.
package permission
