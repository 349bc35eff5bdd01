//! The targets without libFuzzer: a fixed number of random inputs, and changes to good ones, from a fixed seed.

/// xorshift: enough to choose bytes.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

const SEEDS: &[&[u8]] = &[
    b"self.l.all(x, x.size() < 3 && has(self.s)) || self.i + 1 in [1, 2].map(y, y * 2)",
    b"self.?s.orValue('a').split('').join('-').matches('^a.*$') ? self.m['q'] > 1 : self.k.exists_one(e, e.a == 'x')",
    b"'%s %d %.3f %x'.format([self.s, self.i, self.n, 255]).substring(1, 4).replace('', self.s).lastIndexOf('b', 2) > 0",
    b"quantity('1.5Gi').add(2).compareTo(quantity('-1n')) < int('9223372036854775807') && cidr('10.0.0.0/8').containsIP(ip('::1'))",
    b"duration('1h') + self.d > timestamp('2024-01-01T00:00:00Z') - self.t || url('/a?b=%41').getQuery()['b'] == [\"\\u0041\"]",
    b"[[1], [2, 3]].flatten().sortBy(x, -x).slice(0, 2).transformMap(i, v, i + v).all(k, v, k < v) == oldSelf.b",
    br#"{"a":[1,-2.5e3,"\u00e9\n",true,null],"a":{}}"#,
    b"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"pattern\":\"^a\",\"default\":\"b\"},\"x-kubernetes-list-type\":\"set\"},\"e\":{\"type\":\"object\",\"x-kubernetes-embedded-resource\":true,\"x-kubernetes-preserve-unknown-fields\":true}}}\0{\"a\":[\"x\",1,null],\"e\":{\"kind\":\"K\",\"metadata\":{\"name\":\"n\",\"labels\":{\"a\":\"b\"}}}}",
    b"app in (a,b),!c,d>1,e!=f,g notin ()",
    b"-0012.50e-3\x001.5Gi",
    b"99999999999999999999.9Ei\x0012345678901234567890123456789012345678901234567890n",
    b"TZ=America/New_York */15 1-3,5 * feb-mar mon",
    b"@every 1h2.5s",
    br"metadata.name=a\,b,status.phase!=x",
    b"{\"a\":{\"b\":[1,2]}}\0[{\"op\":\"move\",\"from\":\"/a/b/0\",\"path\":\"/a/c\"},{\"op\":\"add\",\"path\":\"/a/b/-\",\"value\":{}},{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/d\"}]",
    b"{\"a\":{\"b\":1}}\0{\"a\":{\"b\":null,\"c\":[{\"d\":null}]}}",
    b"{\"containers\":[{\"name\":\"a\",\"x\":[1]},{\"name\":\"b\"}]}\0{\"containers\":[{\"name\":\"b\",\"$patch\":\"delete\"},{\"name\":\"a\",\"x\":[2],\"$deleteFromPrimitiveList/x\":[1]}],\"$setElementOrder/containers\":[{\"name\":\"a\"}],\"$retainKeys\":[\"containers\"]}",
    b"k8s\0\n\x09\n\x02v1\x12\x03Pod\x12\x0d\n\x01a\x10\x01\x32\x02\x08\x05\x4a\x03\x0a\x01\x32",
    b"\n\x01a\x10\x01\x18\x07\x2a\x02xy\x32\x02\x08\x05\x42\x03\n\x01\x32\x4a\x04\x08\x01\x1a\x00\x52\x04\n\x02{}\x62\x02\x08\x01\x72\x05\x72\x03\n\x01b\x8a\x01\x02\x01\x02\xea\x01\x06\n\x01k\x12\x01v\xda\x02\x07\n\x01k\x12\x02\n\x00",
    b"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"k\":{\"type\":\"string\"},\"v\":{\"type\":\"integer\"}}},\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":[\"k\"]},\"s\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"x-kubernetes-list-type\":\"set\"},\"m\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}}}\0{\"apiVersion\":\"g/v1\",\"kind\":\"K\",\"metadata\":{\"name\":\"n\",\"uid\":\"u\",\"managedFields\":[{\"manager\":\"a\",\"operation\":\"Apply\",\"apiVersion\":\"g/v1\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:a\":{\"k:{\\\"k\\\":\\\"x\\\"}\":{\".\":{},\"f:v\":{}}},\"f:s\":{\"v:\\\"p\\\"\":{}}}}]},\"a\":[{\"k\":\"x\",\"v\":1}],\"s\":[\"p\"],\"m\":{\"y\":\"1\"}}\0{\"apiVersion\":\"g/v1\",\"kind\":\"K\",\"metadata\":{\"name\":\"n\"},\"a\":[{\"k\":\"y\",\"v\":2}],\"s\":[\"q\"],\"m\":{}}",
];

fn main() {
    let rounds = std::env::args().nth(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(20_000);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..rounds {
        let mut bytes = SEEDS[random.below(SEEDS.len())].to_vec();
        for _ in 0..=random.below(6) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[at] = random.below(256) as u8,
                1 => bytes[at] = b"{}[]\",:\\0159-.etfn"[random.below(18)],
                2 => drop(bytes.remove(at)),
                _ => {
                    let end = at + random.below((bytes.len() - at).min(24) + 1);
                    let piece = bytes[at..end].to_vec();
                    let to = random.below(bytes.len());
                    bytes.splice(to..to, piece);
                }
            }
            if bytes.is_empty() {
                bytes.push(b'0');
            }
        }
        windlass_schema_fuzz::json_read(&bytes);
        windlass_schema_fuzz::schema_check(&bytes);
        windlass_schema_fuzz::selectors(&bytes);
        windlass_schema_fuzz::quantities(&bytes);
        windlass_schema_fuzz::schedules(&bytes);
        windlass_schema_fuzz::rules(&bytes);
        windlass_schema_fuzz::merges(&bytes);
        windlass_schema_fuzz::protobuf(&bytes);
        windlass_schema_fuzz::apply_update(&bytes);
    }
    println!("{rounds} rounds, no target failed");
}
