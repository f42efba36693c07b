// Package mcptypes holds the types of the Model Context Protocol, version
// 2025-06-18, generated from its schema.
package mcptypes

//go:generate go run ../gen -schema ../schema/2025-06-18/schema.json -out .
