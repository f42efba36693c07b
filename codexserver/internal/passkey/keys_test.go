package passkey_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/passkey"
	"github.com/codexmcp/codexmcp/codexserver/internal/passkey/passkeytest"
	"github.com/google/go-cmp/cmp"
)

func newKey(t *testing.T, origin string) (*passkeytest.Device, passkey.Key) {
	t.Helper()
	d := passkeytest.New(t, "EdDSA")
	challenge := passkey.NewNonce()
	key, err := passkey.Register(party(t, origin), challenge, d.Create(origin, challenge))
	if err != nil {
		t.Fatal(err)
	}
	return d, *key
}

// TestKeys adds and removes keys. A number is not used again, a key is not added twice, and one that
// was removed signs nothing any more.
func TestKeys(t *testing.T) {
	keys := passkey.NewKeys(passkey.File(t.TempDir()))
	if all, err := keys.List(); len(all) > 0 || err != nil {
		t.Errorf("without a file: %v, %v", all, err)
	}
	d, one := newKey(t, here)
	_, two := newKey(t, secure)
	for _, tt := range []struct {
		key        passkey.Key
		name, want string
	}{{one, "", "passkey 1"}, {two, "phone\xff" + strings.Repeat("x", 200), "phone" + strings.Repeat("x", 94)}} {
		added, err := keys.Add(tt.key, tt.name)
		if err != nil || added.Name != tt.want {
			t.Errorf("%+v, %v", added, err)
		}
	}
	if _, err := keys.Add(one, "again"); err == nil {
		t.Error("a key was added twice")
	}
	for origin, want := range map[string]int{here: 1, secure: 2, "https://example.com": 0} {
		all, err := keys.Of(party(t, origin))
		if err != nil || want == 0 && len(all) > 0 || want > 0 && (len(all) != 1 || all[0].Number != want) {
			t.Errorf("%s: %+v, %v", origin, all, err)
		}
	}
	s := statement(here)
	signed := d.Sign(here, hash(t, s))
	if _, err := passkey.Prove(keys, s, signed); err != nil {
		t.Error(err)
	}
	removed, left, err := keys.Remove(1)
	if err != nil || removed.Name != "passkey 1" || len(left) != 1 || left[0].Number != 2 {
		t.Errorf("%+v, %+v, %v", removed, left, err)
	}
	if _, err := passkey.Prove(keys, s, signed); err == nil {
		t.Error("a removed key has signed")
	}
	if _, _, err := keys.Remove(1); err == nil {
		t.Error("a key was removed twice")
	}
	if again, err := keys.Add(one, ""); err != nil || again.Number != 3 {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestKeysAtOnce adds keys from several goroutines, as processes do.
func TestKeysAtOnce(t *testing.T) {
	path := passkey.File(t.TempDir())
	var adding sync.WaitGroup
	for range 10 {
		_, key := newKey(t, here)
		adding.Go(func() {
			if _, err := passkey.NewKeys(path).Add(key, ""); err != nil {
				t.Error(err)
			}
		})
	}
	adding.Wait()
	if all, err := passkey.NewKeys(path).List(); err != nil || len(all) != 10 || all[9].Number != 10 {
		t.Errorf("%d keys, %v", len(all), err)
	}
}

// TestWrongFiles has files that are not read, so that nothing is approved: not even by the keys in them
// that are right.
func TestWrongFiles(t *testing.T) {
	path := passkey.File(t.TempDir())
	d, key := newKey(t, here)
	if _, err := passkey.NewKeys(path).Add(key, "key"); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty":           "",
		"not JSON":        "{",
		"another version": strings.Replace(string(good), `"version": 1`, `"version": 2`, 1),
		"unknown member":  strings.Replace(string(good), `"version": 1`, `"version": 1, "more": 1`, 1),
		"member twice":    strings.Replace(string(good), `"last": 1`, `"last": 1, "last": 1`, 1),
		"number":          strings.Replace(string(good), `"number": 1`, `"number": 0`, 1),
		"last":            strings.Replace(string(good), `"last": 1`, `"last": 0`, 1),
		"algorithm":       strings.Replace(string(good), `"EdDSA"`, `"ES256"`, 1),
		"party":           strings.Replace(string(good), `"localhost"`, `""`, 1),
		"id":              strings.Replace(string(good), passkey.Bytes(key.ID).String(), "", 1),
		"cut key":         strings.Replace(string(good), passkey.Bytes(key.PublicKey).String(), passkey.Bytes(key.PublicKey[:40]).String(), 1),
		"long key":        strings.Replace(string(good), passkey.Bytes(key.PublicKey).String(), passkey.Bytes(append(key.PublicKey, 0)).String(), 1),
		"huge":            string(good) + strings.Repeat(" ", 1<<20),
	} {
		if text == string(good) {
			t.Fatalf("%s: nothing was changed", name)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		keys := passkey.NewKeys(path)
		if all, err := keys.List(); err == nil {
			t.Errorf("%s: %v", name, all)
		}
		s := statement(here)
		if _, err := passkey.Prove(keys, s, d.Sign(here, hash(t, s))); err == nil {
			t.Errorf("%s: a key has signed", name)
		}
		if _, err := keys.Add(key, ""); err == nil {
			t.Errorf("%s: the file was replaced", name)
		}
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := passkey.NewKeys(path).List(); err != nil || len(all) != 1 {
		t.Errorf("the good file: %v, %v", all, err)
	}
	link := filepath.Join(t.TempDir(), "passkeys.json")
	if err := os.Symlink(path, link); err == nil {
		if all, err := passkey.NewKeys(link).List(); err == nil {
			t.Errorf("a link: %v", all)
		}
	}
}

// TestBytes writes bytes as browsers do, and reads them in this way alone.
func TestBytes(t *testing.T) {
	for text, want := range map[string]string{"": "", "_-8": "\xff\xef", "AA": "\x00"} {
		var b passkey.Bytes
		if err := b.UnmarshalText([]byte(text)); err != nil || string(b) != want || b.String() != text {
			t.Errorf("%s: %x, %v", text, b, err)
		}
		if got, err := b.MarshalText(); err != nil || cmp.Diff(text, string(got)) != "" {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"AB", "/+8", "AA==", "A", "A\nA", " AA"} {
		var b passkey.Bytes
		if b.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q is read as %x", text, b)
		}
	}
}
