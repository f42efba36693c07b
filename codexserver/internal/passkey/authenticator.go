package passkey

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// The flags of authenticator data.
const (
	flagPresent    = 1 << 0 // a person was there
	flagVerified   = 1 << 2 // and is the owner, by a PIN, a finger or a face
	flagSyncable   = 1 << 3 // the key may leave the authenticator
	flagSynced     = 1 << 4 // and has
	flagKey        = 1 << 6 // a new key follows
	flagExtensions = 1 << 7 // extensions follow
)

// maxID is the length of the longest id of a key, in bytes.
const maxID = 1023

// authenticatorData is what an authenticator says and signs.
type authenticatorData struct {
	party      [32]byte // the hash of the relying party's id
	flags      byte
	count      uint32
	id, key    []byte // of a new key, whose key is in COSE
	parsed     *publicKey
	extensions any
}

var (
	errAuthenticator = errors.New("the authenticator's data are cut or have something after their end")
	errParty         = errors.New("the authenticator signed for another relying party")
	errPresent       = errors.New("nobody touched the authenticator")
	errVerified      = errors.New("the authenticator did not verify who used it: it needs a PIN, a finger or a face")
	errBackup        = errors.New("the authenticator's flags contradict each other")
)

// readAuthenticator reads authenticator data whole.
func readAuthenticator(b []byte) (*authenticatorData, error) {
	if len(b) < 37 {
		return nil, errAuthenticator
	}
	d := &authenticatorData{party: [32]byte(b), flags: b[32], count: binary.BigEndian.Uint32(b[33:])}
	b = b[37:]
	if d.flags&flagKey != 0 {
		const head = 16 + 2 // the kind of authenticator, and the length of the id
		if len(b) < head {
			return nil, errAuthenticator
		}
		n := int(binary.BigEndian.Uint16(b[16:]))
		if b = b[head:]; n == 0 || n > maxID || n > len(b) {
			return nil, errAuthenticator
		}
		d.id, d.key = b[:n:n], b[n:]
		var err error
		if d.parsed, b, err = readKey(d.key); err != nil {
			return nil, err
		}
		d.key = d.key[: len(d.key)-len(b) : len(d.key)-len(b)]
	}
	if d.flags&flagExtensions != 0 {
		var err error
		if d.extensions, b, err = readCBOR(b); err != nil {
			return nil, err
		}
		if _, ok := d.extensions.(map[any]any); !ok {
			return nil, errAuthenticator
		}
	}
	if len(b) > 0 {
		return nil, errAuthenticator
	}
	return d, nil
}

// check returns an error unless a verified person used the authenticator for a relying party.
func (d *authenticatorData) check(p Party) error {
	switch {
	case d.party != sha256.Sum256([]byte(p.ID)):
		return errParty
	case d.flags&flagPresent == 0:
		return errPresent
	case d.flags&flagVerified == 0:
		return errVerified
	case d.flags&flagSynced != 0 && d.flags&flagSyncable == 0:
		return errBackup
	}
	return nil
}
