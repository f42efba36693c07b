package passkey

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/claim"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Key is a registered passkey.
type Key struct {
	// Number names the key. It is never used again.
	Number int `json:"number"`
	// Name is a person's word for the key.
	Name string `json:"name"`
	// ID is the authenticator's.
	ID Bytes `json:"id"`
	// PublicKey is in COSE, for Algorithm: ES256, EdDSA or RS256.
	PublicKey Bytes  `json:"publicKey"`
	Algorithm string `json:"algorithm"`
	// Party is the id of the relying party, a host: the key signs only there.
	Party string `json:"party"`
	// Count is how often the authenticator has signed, 0 for one that does not count.
	Count uint32 `json:"count"`
	// Syncable is true if the key may be copied to other devices, as by a password manager.
	Syncable bool `json:"syncable,omitzero"`
	// At is when the key was registered.
	At time.Time `json:"at"`
}

// Fingerprint returns the beginning of the SHA-256 of the public key, in hexadecimal.
func (k *Key) Fingerprint() string {
	sum := sha256.Sum256(k.PublicKey)
	return hex.EncodeToString(sum[:8])
}

// Keys are the passkeys in a file. They are safe for concurrent use, and by several processes at a
// time. Nothing is kept in memory, so that a key that was removed is gone at once.
type Keys struct{ path string }

// File returns the path of the file of the keys in a home.
func File(home string) string { return filepath.Join(home, "codex-mcp", "passkeys.json") }

// NewKeys returns the keys in a file. It does not read or write files.
func NewKeys(path string) *Keys { return &Keys{path} }

// content is the content of the file.
type content struct {
	Version int   `json:"version"`
	Last    int   `json:"last"` // the highest number of a key at any time
	Keys    []Key `json:"keys"`
}

const (
	version = 1
	maxFile = 1 << 20
	maxKeys = 64
	maxName = 100 // bytes
)

// List returns the keys, the oldest first. A missing file has none.
func (k *Keys) List() ([]Key, error) {
	c, err := k.read()
	return c.Keys, err
}

// Of returns the keys of a relying party.
func (k *Keys) Of(p Party) ([]Key, error) {
	all, err := k.List()
	return slices.DeleteFunc(all, func(key Key) bool { return key.Party != p.ID }), err
}

func (k *Keys) read() (content, error) {
	data, err := safefile.ReadSecret(k.path, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return content{Version: version}, nil
	case err != nil:
		return content{}, err
	}
	c, err := decode(data)
	if err != nil {
		return content{}, fmt.Errorf("%s: %w", k.path, err)
	}
	return c, nil
}

// decode decodes the content of the file, whole or not at all.
func decode(data []byte) (content, error) {
	var c content
	if err := json.Unmarshal(data, &c, json.RejectUnknownMembers(true)); err != nil {
		return content{}, err
	}
	if c.Version != version {
		return content{}, fmt.Errorf("its version is %d, and this program reads version %d", c.Version, version)
	}
	last := 0
	for _, key := range c.Keys {
		parsed, rest, err := readKey(key.PublicKey)
		switch {
		case key.Number <= last || key.Number > c.Last:
			return content{}, fmt.Errorf("the number %d of a key is not in order", key.Number)
		case err != nil:
			return content{}, fmt.Errorf("key %d: %w", key.Number, err)
		case len(rest) > 0 || parsed.algorithm != key.Algorithm || len(key.ID) == 0 || key.Party == "":
			return content{}, fmt.Errorf("key %d is not whole", key.Number)
		}
		last = key.Number
	}
	return c, nil
}

// Add adds a key with a name, and returns it with its number.
func (k *Keys) Add(key Key, name string) (Key, error) {
	err := k.change(func(c *content) error {
		switch {
		case slices.ContainsFunc(c.Keys, func(old Key) bool { return bytes.Equal(old.ID, key.ID) }):
			return errors.New("this passkey is registered already")
		case len(c.Keys) == maxKeys:
			return fmt.Errorf("%s: it has %d passkeys; codex-mcp passkey remove removes some", k.path, maxKeys)
		}
		c.Last++
		key.Number = c.Last
		key.Name = cmp.Or(strings.ToValidUTF8(name[:min(len(name), maxName)], ""), fmt.Sprintf("passkey %d", c.Last))
		c.Keys = append(c.Keys, key)
		return nil
	})
	return key, err
}

// Remove removes the key with a number, and returns it and the keys that are left.
func (k *Keys) Remove(number int) (removed Key, left []Key, err error) {
	err = k.change(func(c *content) error {
		i := slices.IndexFunc(c.Keys, func(key Key) bool { return key.Number == number })
		if i < 0 {
			return fmt.Errorf("there is no passkey %d", number)
		}
		removed = c.Keys[i]
		c.Keys = slices.Delete(c.Keys, i, i+1)
		left = c.Keys
		return nil
	})
	return removed, left, err
}

// counted notes how often an authenticator has signed. One that does not count says 0 each time.
func (k *Keys) counted(key Key, count uint32) error {
	if count == 0 && key.Count == 0 {
		return nil
	}
	return k.change(func(c *content) error {
		i := slices.IndexFunc(c.Keys, func(old Key) bool { return old.Number == key.Number })
		switch {
		case i < 0:
			return errUnknown
		case count <= c.Keys[i].Count:
			return errCount
		}
		c.Keys[i].Count = count
		return nil
	})
}

// change changes the file while no other process does.
func (k *Keys) change(edit func(*content) error) error {
	dir, name := filepath.Split(k.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return claim.Alone(filepath.Join(dir, strings.TrimSuffix(name, filepath.Ext(name))+".lock"), func() error {
		c, err := k.read()
		if err != nil {
			return err
		}
		if err := edit(&c); err != nil {
			return err
		}
		data, err := json.Marshal(c, jsontext.Multiline(true))
		if err != nil {
			return err
		}
		return safefile.Write(k.path, append(data, '\n'), 0o600)
	})
}
