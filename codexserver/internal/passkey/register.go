package passkey

import (
	"errors"
	"fmt"
	"time"
)

// Attestation is what a browser returns for a new key.
type Attestation struct {
	ClientData  Bytes `json:"clientDataJSON"`
	Attestation Bytes `json:"attestationObject"`
}

// maxAttestation is the length of the longest attestation object, in bytes.
const maxAttestation = 16 << 10

var errAttestation = errors.New("the new key cannot be read")

// Register returns the new key of an attestation that answers a challenge of p. It has no name yet.
func Register(p Party, challenge []byte, a *Attestation) (*Key, error) {
	client, err := readClient(a.ClientData)
	if err != nil {
		return nil, err
	}
	if err := client.check(typeCreate, p, challenge); err != nil {
		return nil, err
	}
	if len(a.Attestation) > maxAttestation {
		return nil, errAttestation
	}
	v, rest, err := readCBOR(a.Attestation)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAttestation, err)
	}
	m, _ := v.(map[any]any)
	format, _ := m["fmt"].(string)
	statement, isMap := m["attStmt"].(map[any]any)
	raw, isBytes := m["authData"].([]byte)
	switch {
	case len(rest) > 0 || len(m) != 3 || !isMap || !isBytes:
		return nil, errAttestation
	case format != "none" || len(statement) > 0: // which the page asks for
		return nil, fmt.Errorf("%w: its attestation is %.20q, not none", errAttestation, format)
	}
	data, err := readAuthenticator(raw)
	if err != nil {
		return nil, err
	}
	if data.parsed == nil {
		return nil, errAttestation
	}
	if err := data.check(p); err != nil {
		return nil, err
	}
	return &Key{
		ID: data.id, PublicKey: data.key, Party: p.ID, Algorithm: data.parsed.algorithm,
		Count: data.count, Syncable: data.flags&flagSyncable != 0, At: time.Now().UTC().Round(0),
	}, nil
}
