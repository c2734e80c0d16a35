package stentor.lab.plain;

import stentor.lab.json.OrgJson;

/** JSON by org.json. */
final class JsonCodec extends OrgJson implements Codec.Same {}
