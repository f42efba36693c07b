// Package search finds files by a few letters of their paths.
//
//	Files ──▶ Walk (what .gitignore leaves) ──▶ match (score, places) ──▶ the best of each root
//
// A query is one or more words. The letters of each word must occur in the path in order, without
// regard to case. Letters that are together, or at the beginning of a word or of a name, score
// higher.
package search
