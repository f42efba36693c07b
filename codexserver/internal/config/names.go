package config

import (
	"reflect"
	"strings"
	"sync"
)

// keyNames are the names of keys that this package knows. They are found when they are first
// needed, so that nothing of it runs before main, and are read only then.
type keyNames struct {
	once sync.Once

	here map[string]bool // top keys of config.toml that this package reads or may ignore
	top  map[string]bool // those, and the other keys of Codex

	tools, provider, server map[string]bool // keys of these tables
	environment             map[string]bool // keys of shell_environment_policy that a call may set
	features                map[string]featureKind
}

// knownNames are shared by all calls.
var knownNames keyNames

// featureKind says what a call may do to a feature of Codex.
type featureKind int

const (
	otherFeature featureKind = iota // nothing
	offFeature                      // switch it off
	freeFeature                     // switch it on and off
)

func (n *keyNames) get() *keyNames {
	n.once.Do(n.find)
	return n
}

func (n *keyNames) find() {
	n.here = set(members(reflect.TypeFor[Config]()), theirKeys)
	n.top = set(members(reflect.TypeFor[Config]()), theirKeys, strings.Fields(codexKeys))
	n.tools = set(members(reflect.TypeFor[Tools]()), []string{"web_search_request"})
	n.provider = set(members(reflect.TypeFor[Provider]()))
	n.server = set(members(reflect.TypeFor[MCPServer]()), theirServerKeys)
	n.environment = set(members(reflect.TypeFor[callEnvironment]()))
	n.features = map[string]featureKind{}
	// The stricter kind comes last, so that it counts for a name in two lists.
	for _, list := range []struct {
		kind  featureKind
		names string
	}{{freeFeature, freeFeatures}, {offFeature, offFeatures}, {otherFeature, codexFeatures}} {
		for name := range strings.FieldsSeq(list.names) {
			n.features[name] = list.kind
		}
	}
}

func set(lists ...[]string) map[string]bool {
	all := map[string]bool{}
	for _, list := range lists {
		for _, name := range list {
			all[name] = true
		}
	}
	return all
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
