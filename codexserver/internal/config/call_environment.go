package config

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/text"
)

// ShellEnvironmentKey is the name of the table of [ShellEnvironment].
const ShellEnvironmentKey = "shell_environment_policy"

// callEnvironment is the part of the policy that a call may set.
type callEnvironment struct {
	Inherit     *string   `json:"inherit"`
	Exclude     []string  `json:"exclude"`
	IncludeOnly *[]string `json:"include_only"`
}

// NarrowEnvironment applies a call's table shell_environment_policy to base, that of the
// configuration, and returns the result as a table. The call's patterns to exclude are
// added to those of base. NarrowEnvironment fails if the call would widen the policy.
func NarrowEnvironment(base ShellEnvironment, table map[string]any) (map[string]any, error) {
	wider := func(key string) error {
		return fmt.Errorf("%s.%s: a call may narrow the configuration's, not widen it; %s", ShellEnvironmentKey, JoinKey(key), whoAllows(false))
	}
	said, out := layer{}, layer{}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		switch v := table[key]; {
		case slices.Contains(members(reflect.TypeFor[callEnvironment]()), key):
			said[key] = v
		case isOn(callOff, JoinKey(ShellEnvironmentKey, key)) && v == false:
			out[key] = v
		default:
			return nil, wider(key)
		}
	}
	var call struct {
		Environment callEnvironment `json:"shell_environment_policy"`
	}
	if err := decode(layer{ShellEnvironmentKey: said}, &call); err != nil {
		return nil, err
	}
	e := call.Environment
	if e.Inherit != nil {
		word := *e.Inherit
		if !slices.Contains(inheritWords, word) {
			return nil, fmt.Errorf("%s.inherit: %q is not one of %s", ShellEnvironmentKey, word, text.Or(inheritWords[1:]))
		}
		if breadth(word) > breadth(base.Inherit) {
			return nil, wider("inherit")
		}
		out["inherit"] = word
	}
	if len(e.Exclude) > 0 {
		out["exclude"] = slices.Concat(base.Exclude, e.Exclude)
	}
	if e.IncludeOnly != nil {
		for _, pattern := range *e.IncludeOnly {
			if len(base.IncludeOnly) > 0 && !slices.ContainsFunc(base.IncludeOnly, func(of string) bool { return covers(of, pattern) }) {
				return nil, wider("include_only")
			}
		}
		if len(*e.IncludeOnly) == 0 && len(base.IncludeOnly) > 0 {
			return nil, wider("include_only") // no patterns keep everything
		}
		out["include_only"] = *e.IncludeOnly
	}
	return out, nil
}

// inheritWords are the values of inherit; "" is "all".
var inheritWords = []string{"", "all", "core", "none"}

// breadth orders the words of inherit by how many variables they pass. An unknown word is
// the narrowest.
func breadth(word string) int {
	i := slices.Index(inheritWords, word)
	if i < 0 {
		i = len(inheritWords)
	}
	return -max(1, i)
}

// covers reports whether wide matches every name that pattern matches. If pattern is not a
// plain name, it must be equal to wide.
func covers(wide, pattern string) bool {
	if strings.EqualFold(wide, pattern) {
		return true
	}
	if strings.ContainsAny(pattern, `*?[\`) {
		return false
	}
	fits, err := path.Match(strings.ToUpper(wide), strings.ToUpper(pattern))
	return err == nil && fits
}
