// Command go-structs writes what the simulated controllers need to know of Go's structs to take the same hashes over them.
//
//	go run . types  > ../../go-dump/src/types.txt
//	go run . hashes < templates.jsonl > ../../go-dump/src/hashes.jsonl
//
// `hashes` reads a pod template a line (`{"template": …}` or with a `collisions`), takes it through protobuf as a controller's
// informer would, and adds what the ReplicaSet controller calls it. A line with `ports` (of Endpoints) or `slicePorts` gets the
// hash of each. Lines with `"program": "openkruise"` are read as JSON, and only by `go run -modfile openkruise.mod . hashes`, which
// has the libraries of OpenKruise 1.9.0; it leaves all others out.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"reflect"
	"sort"
	"strings"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"
)

// Types whose values are not what their JSON says field by field: the Rust side knows them by name.
var special = map[string]bool{
	"resource.Quantity": true, "v1.Time": true, "v1.MicroTime": true, "intstr.IntOrString": true, "v1.FieldsV1": true,
}

type table map[string]string

// name gives a type's text in the table: as Go prints it, with a mark where two packages have types of one name.
func name(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + name(t.Elem())
	case reflect.Slice:
		if t.Name() == "" {
			return "[]" + name(t.Elem())
		}
	case reflect.Map:
		if t.Name() == "" {
			return "map[" + name(t.Key()) + "]" + name(t.Elem())
		}
	}
	if strings.HasSuffix(t.PkgPath(), "discovery/v1") {
		return t.String() + "@discovery"
	}
	return t.String()
}

func (all table) add(t reflect.Type) {
	switch {
	case special[t.String()]:
		return
	case t.Name() == "" && t.Kind() == reflect.Map:
		all.add(t.Key())
		all.add(t.Elem())
		return
	case t.Name() == "" && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice):
		all.add(t.Elem())
		return
	case t.PkgPath() == "":
		return
	}
	key := name(t)
	if _, known := all[key]; known {
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		all[key] = "-"
		var fields []string
		for i := 0; i < t.NumField(); i++ {
			field := t.Field(i)
			word := field.Name
			tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case tag == "":
				word = "~" + word
			case tag != strings.ToLower(word[:1])+word[1:]:
				word += "/" + tag
			}
			fields = append(fields, word+":"+name(field.Type))
			all.add(field.Type)
		}
		all[key] = strings.Join(fields, " ")
	case reflect.Map:
		all[key] = "= map[" + name(t.Key()) + "]" + name(t.Elem())
		all.add(t.Elem())
	case reflect.Slice:
		all[key] = "= []" + name(t.Elem())
		all.add(t.Elem())
	default:
		all[key] = "= " + t.Kind().String()
	}
}

func types() {
	all := table{}
	for _, root := range []any{core.PodTemplateSpec{}, core.EndpointSubset{}, discovery.EndpointPort{}} {
		all.add(reflect.TypeOf(root))
	}
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Println("# Go's structs that hashes are taken over, in the order of their fields: `Name:type`, `Name/json:type` where the name in JSON")
	fmt.Println("# is not the same with a small first letter, `~Name:type` for one whose fields are, in JSON, those of the struct around it; and")
	fmt.Println("# `= type` for named types. `@discovery` tells two types of one name apart. Made by `generators/go-structs` from k8s.io/api v0.36.2.")
	for _, name := range names {
		fmt.Println(name, all[name])
	}
}

type row struct {
	Program    string          `json:"program,omitempty"`
	Template   json.RawMessage `json:"template,omitempty"`
	Collisions *int32          `json:"collisions,omitempty"`
	Ports      json.RawMessage `json:"ports,omitempty"`
	SlicePorts json.RawMessage `json:"slicePorts,omitempty"`
	Subset     json.RawMessage `json:"subset,omitempty"`
	Hash       string          `json:"hash,omitempty"`
	Hashes     []string        `json:"hashes,omitempty"`
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func hash128(object any) string {
	hasher := fnv.New128a()
	fmt.Fprint(hasher, dump.ForHash(object))
	return hex.EncodeToString(hasher.Sum(nil))
}

func hashes() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line row
		must(json.Unmarshal(lines.Bytes(), &line))
		_, isNew := reflect.TypeOf(core.PodSpec{}).FieldByName("SchedulingGroup")
		if isNew == (line.Program == "openkruise") {
			continue
		}
		switch {
		case line.Template != nil:
			var sent, read core.PodTemplateSpec
			must(json.Unmarshal(line.Template, &sent))
			if line.Program == "openkruise" {
				read = sent
			} else {
				wire, err := sent.Marshal()
				must(err)
				must(read.Unmarshal(wire))
			}
			hasher := fnv.New32a()
			text := dump.ForHash(*read.DeepCopy())
			if os.Getenv("DUMP") != "" {
				fmt.Fprintln(os.Stderr, text)
			}
			fmt.Fprint(hasher, text)
			if line.Collisions != nil {
				count := make([]byte, 8)
				binary.LittleEndian.PutUint32(count, uint32(*line.Collisions))
				hasher.Write(count)
			}
			line.Hash = rand.SafeEncodeString(fmt.Sprint(hasher.Sum32()))
		case line.Ports != nil:
			var ports []core.EndpointPort
			must(json.Unmarshal(line.Ports, &ports))
			for _, port := range ports {
				line.Hashes = append(line.Hashes, hash128(port))
			}
		case line.SlicePorts != nil:
			var ports []discovery.EndpointPort
			must(json.Unmarshal(line.SlicePorts, &ports))
			for _, port := range ports {
				line.Hashes = append(line.Hashes, hash128(port))
			}
		case line.Subset != nil:
			var subset core.EndpointSubset
			must(json.Unmarshal(line.Subset, &subset))
			line.Hash = hash128(subset)
		}
		out, err := json.Marshal(line)
		must(err)
		fmt.Println(string(out))
	}
	must(lines.Err())
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "types" {
		types()
	} else if len(os.Args) == 2 && os.Args[1] == "hashes" {
		hashes()
	} else {
		fmt.Fprintln(os.Stderr, "go-structs types|hashes")
		os.Exit(2)
	}
}
