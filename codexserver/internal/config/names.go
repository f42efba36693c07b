package config

import (
	"reflect"
	"strings"
)

// The names of the keys that this package knows are collected when one is looked up. Most starts
// look up few, and many none.

// keysHere returns the top keys of config.toml that this package reads or may ignore.
func keysHere() []string { return append(members(reflect.TypeFor[Config]()), theirKeys...) }

// allKeys returns those, and the other top keys of Codex.
func allKeys() []string { return append(keysHere(), strings.Fields(codexKeys)...) }

// toolsKeys returns the keys of the table tools.
func toolsKeys() []string { return append(members(reflect.TypeFor[Tools]()), "web_search_request") }

// workspaceKeys returns the keys of workspaceTable.
func workspaceKeys() []string { return members(reflect.TypeFor[WorkspaceWrite]()) }

// providerKeys returns the keys of a provider.
func providerKeys() []string { return members(reflect.TypeFor[Provider]()) }

// serverTableKeys returns the keys of an MCP server.
func serverTableKeys() []string {
	return append(members(reflect.TypeFor[MCPServer]()), theirServerKeys...)
}

// members returns the keys of a table.
func members(t reflect.Type) []string {
	var names []string
	for field := range t.Fields() {
		switch name, _, _ := strings.Cut(field.Tag.Get("json"), ","); {
		case name != "" && name != "-":
			names = append(names, name)
		case field.Anonymous && field.Type.Kind() == reflect.Struct:
			names = append(names, members(field.Type)...)
		}
	}
	return names
}
