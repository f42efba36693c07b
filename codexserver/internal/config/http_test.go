package config_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
)

// TestLockedOverHTTP lists the arguments that calls over HTTP may not choose.
func TestLockedOverHTTP(t *testing.T) {
	for _, tt := range []struct {
		unlocked, everywhere []string
		want                 string
	}{
		{nil, nil, "[approval-policy config profile sandbox]"},
		{[]string{"config"}, nil, "[approval-policy profile sandbox]"},
		{[]string{"config"}, []string{"config", "model"}, "[config model approval-policy profile sandbox]"},
	} {
		h := &config.HTTP{UnlockedArguments: tt.unlocked}
		if got := fmt.Sprint(h.Locked(tt.everywhere)); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

// TestLoadHTTP reads the table http for another program's keys.
func TestLoadHTTP(t *testing.T) {
	type table struct {
		URL string `json:"url"`
	}
	for _, tt := range []struct{ file, arg, url, problem string }{
		{file: "shared = true"},
		{file: "[http]\nurl = \"a\"", url: "a"},
		{file: "[http]\nurl = \"a\"", arg: "http.url=b", url: "b"},
		{file: "[http", problem: "FILE:1:"},
		{file: "\n[http]\nulr = \"a\"", problem: "FILE:3: http.ulr: unknown key"},
		{file: "[http]\nurl = 1", problem: "FILE:2: http.url: want a string"},
		{file: "http = 1", problem: "FILE:1: http: want a table"},
		{file: "[http]\nurl = \"bad\"", problem: "FILE:2: http.url: is bad"},
		{arg: "http.url=bad", problem: "-c http.url: is bad"},
		{arg: "http", problem: "-c http: want KEY=VALUE"},
	} {
		dir := home(t, map[string]string{config.SettingsFile: tt.file})
		var args []string
		if tt.arg != "" {
			args = []string{tt.arg}
		}
		var got table
		err := config.LoadHTTP(dir, args, &got, func() error {
			if got.URL == "bad" {
				return errors.New("http.url: is bad")
			}
			return nil
		})
		if want := strings.Replace(tt.problem, "FILE", filepath.Join(dir, config.SettingsFile), 1); want != "" {
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%q %s: %v, want %s", tt.file, tt.arg, err, want)
			}
		} else if err != nil || got.URL != tt.url {
			t.Errorf("%q %s: %q, %v", tt.file, tt.arg, got.URL, err)
		}
	}
}
