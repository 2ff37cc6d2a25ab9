import importlib.util
import re
import sys
from collections import defaultdict

from gis_builder.pairing.pair_folder import gis_card
from gis_builder.pairing.secrets import KINDS, scrub_secrets
from tests.support.linear import assert_linear, repeated
from tests.support.shorthand import ROOT, parametrize, text_lines, values

BODY = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
HEX = "0123456789abcdef"
JWT = f"eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkFubiJ9.{BODY * 5}"
WRAPPED = "\n".join(JWT[start : start + 64] for start in range(0, len(JWT), 64))
DJANGO = "5y!k#2x(9@v$z&1w=u^e7-q)t+b*m3n0_j8h6g4f%d"


KEY_LABELS = ("токен: ", "密钥：", "clé d'API : ", "API-Schlüssel: ", "APIキー：")
PASSWORD_LABELS = (
    "密码：",
    "用户名：admin 密碼: ",
    "密码是 ",
    "パスワード：",
    "비밀번호: ",
    "Логин: ann, пароль: ",
    "Passwort: ",
    "mot de passe : ",
    "mot de passe\xa0: ",
    "la contraseña es ",
    "senha: ",
    "Hasło: ",
    "şifre: ",
    "wachtwoord: ",
    "Parola: ",
    "**密码：** ",
    "__Password:__ ",
    "- **Passwort:** ",
)


# Secrets are between « and ». They are put together here, so that no scanner takes this file for a leak.
SECRETS = {
    "secret_github": [
        f"token «ghp_{BODY}»",
        f"«gho_{BODY}».",
        f"«github_pat_11ABC_{BODY}»",
    ],
    "secret_aws": [
        "«AKIA" + "IOSFODNN7ABCDEFG»",
        f"aws_secret_access_key = «{BODY}+/ab»",
    ],
    "secret_chat": [
        "«xoxb-" + "123456789012-abcdefghij»",
        "https://hooks.slack.com/services/«" + "T00000000/B00000000/XXXX»",
        "https://discord.com/api/webhooks/«" + "123456789012345678/" + f"{BODY * 2}»",
        "https://api.telegram.org/bot«" + "123456789:AA" + f"{BODY[:33]}»/getMe",
        "client.run('«" + "mfa." + f"{BODY * 2}»')",
    ],
    "secret_google": [f"«AIza{BODY[:35]}»"],
    "secret_llm": [
        f"«sk-{BODY}»",
        f"«sk-ant-api03-{BODY}»",
        "«hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH»",
    ],
    "secret_gitlab": [f"«glpat-{BODY}»"],
    "secret_jwt": [
        f"«eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{BODY}»",
        f"«{WRAPPED}»\n\nIt fails",
    ],
    "secret_service": [
        f"Client('AC{HEX * 2}', '«{HEX[::-1] * 2}»')",
        f"$ wandb login --relogin «{HEX * 2}01234567»",
        f"«lin_oauth_{BODY}0000»",
        f"ngrok config add-authtoken «{BODY}»",
        "«tskey-" + f"auth-{BODY}»",
    ],
    "secret_url_password": [
        "postgres://user:«hunter2»@db.example/x",
        "proxy = svc:«hunter2»@db:5432",
        "sqlplus hr/«tiger»@db",
        "'root:«hunter2»@tcp(db:3306)/app'",
    ],
    "secret_authorization": [
        "-H 'Authorization: Bearer «abc123def456ghi»'",
        "authorization: Basic «dXNlcjpwYXNzd29yZA==»",
        f'{{"name": "X-Auth-Token", "value": "«{BODY}»"}}',
        f"X-Api-Key: «{BODY}»",
    ],
    "secret_assignment": [
        f'API_KEY="«{BODY}»"',
        f"client_secret: «{BODY}»",
        f"define('AUTH_KEY', '«{BODY}»');",
        f"- name: API_KEY\n  value: «{BODY}»",
        f"GET /v1/items?appid=«{BODY}»",
        "API_TOKEN=«abc123de»",
        f"SECRET_KEY = '«{DJANGO}»'",
        f"os.environ.get('SECRET_KEY', '«{DJANGO}»')",
        f'wandb.login(key="«{HEX * 2}»")',
        f"my api key is «{HEX * 2}»",
        f"set -x API_TOKEN «{BODY}»",
        f"token: &main «{BODY}»",
        f"**API key:** `«{BODY}»`",
        f"| API key | `«{BODY}»` |",
        *(f"{name}«{BODY}»" for name in KEY_LABELS),
    ],
    "secret_password": [
        *text_lines(r"""
            DB_PASSWORD=«correcthorse»
            set -gx DB_PASSWORD «correcthorse»
            password: &main «correcthorse»
            user bob\npass «correcthorse»
            "db_password": {"sensitive": true, "type": "string", "value": "«swordfish»"}
            export SMTP_PASS=«battery»
            I ran it with password: «hunter2» and
            {"user": "a", "password": "«swordfish»"}
            log: {\"password\":\"«swordfish»\"}
            Server=x;User=sa;Password=«swordfish»;
            curl -u admin:«swordfish» https://x
            <dbPassword>«swordfish»</dbPassword>
            mysqldump -u root -p«swordfish» shop
            ALTER USER a IDENTIFIED BY '«swordfish»';
            smtp.login("ann", "«swordfish»")
            the password was changed to «hunter2» today
            **Password:** `«abc»`
            **Password**: `«abc»`
            Kennwort = "«geheim»"
        """),
        "  password: «letmein»",
        "ann:«$2y$10$" + "./" * 26 + "a»",
        *(f"{label}«hunter2»" for label in PASSWORD_LABELS),
        *text_lines(r"""
        | password | «abc» |
        | user | ann |\n| **Passwort** | `«hunter2»` |
        <tr><td>password</td><td>«hunter2»</td></tr>
        ConvertTo-SecureString -String "«P@ssw0rd!»" -AsPlainText -Force
        C: AUTH PLAIN «AGFubgBodW50ZXIy»
        S: 334 UGFzc3dvcmQ6\nC: «aHVudGVyMg==»
        echo "db.example:5432:*:ann:«hunter2»" > ~/.pgpass
        storePassword '«android»'
        <password>«{COQLCE6DU6GtcS5P=}»</password>
        find_element(By.ID, "password").send_keys("«hunter2»")
    """),
    ],
    "secret_registry": [f'{{"auths": {{"x": {{"auth": "«{BODY}==»"}}}}}}'],
    "secret_private_key": [
        "tls.key: «LS0tLS1CRUdJTiBS" + "U0EgUFJJVkFURS" + f"{BODY * 2}»",
        f"«-----BEGIN RSA PRIVATE KEY-----\nMIIE{BODY}\n-----END RSA PRIVATE KEY-----»\nthen",
        f"«-----BEGIN PRIVATE KEY-----\n{BODY}»\nand words",
        f"«{BODY}\n> {BODY}\n-----END EC PRIVATE KEY-----»",
        f"'«MIIEpAIBAAKCAQEA{BODY}\n{BODY}\nabc=»'",
        "«-----BEGIN OpenVPN Static key V1-----" + f"\n{HEX * 2}" * 16 + "»\n",
    ],
    "secret_cookie": [
        f".x.io\tTRUE\t/\tTRUE\t1767225600\tsid\t«{BODY}»",
        f"Cookie: «theme=dark; sessionid={BODY}»",
        f"PHPSESSID=«{BODY[:26]}»",
    ],
    "email": ["mail «jane.doe+x@mail.example.org» now", "mailto:«a@b.io»"],
}


# Names with "key", "token", "secret" or "pass" in a word, and names of what a key has or is for.
ORDINARY_NAMES = """
tokenizer_name_or_path=bert-base-uncased-finetuned-mrpc-v2
--tokenizer_name xlm-roberta-large-finetuned-conll03
tokenizer: AutoTokenizerFastV2Implementation
token_type_embeddings_module=Embedding768Type2Vocab30522
tokenization_utils_base=TokenizationUtilsBase4of12X
detokenizer_backend=Sentencepiece32kUnigram2020
tokens_per_second_model_name=A100x8-PCIe-80GB-SXM4
credentials_provider=EC2InstanceMetadataProviderV2
credential_process=aws-vault-exec-prod-2020-json
monkey_business_2020=truestory4ofa2monkeyIn2020
hotkey_binding=Ctrl1Shift2Alt3Meta4F12
--monkey Gevent21Greenlet1PatchAllThreads
https://shop.example/?turkey=Breast2Wings4Legs2Thigh8
KEYBOARD_LAYOUT=us-intl-altgr-2
KEYSPACE_NAME=cassandra_2020_prod1
keyframe_animation: FadeIn300msEaseOut2Bounce4x
secretary_of_state=JohnDoe1950to1999Term2of4
secretName=db-credentials-production-v2
secret_file: Run2SecretsDb3PasswordTxt44
secret_key_path=vault2/kv1/data/team44/prodKey7
api_key_header_prefix=XApi2Version3Header4Prefix5
key_length_by_algorithm=Rsa4096Ec256Ed25519X448
public_key: ssh2Rfc4716Openssh7p9Ed25519
primary_key=OrderId123456LineItem789Row10
partition_key = Tenant42Region7Shard19Bucket3
s3_key=models/2020/01/model-v2-final/part-0001
bearer of bad news 2020
the forbearer_2020: AncestorOf1850sFamily12Tree3
--token-limit 4096tokens-per-request-2020
git config credential.helper Manager2Core4Windows10
COMPASS=north-by-northwest-12
--bypass=localhost;127.0.0.1
"""


@parametrize(
    "kind, marked", [(kind, text) for kind, rows in SECRETS.items() for text in rows]
)
def test_secrets_are_replaced(kind, marked):
    scrubbed, counts = scrub_secrets(marked.translate({ord("«"): None, ord("»"): None}))
    assert counts == {kind: 1}
    assert scrubbed == re.sub(
        "«.*»", "[email]" if kind == "email" else "[secret]", marked, flags=re.DOTALL
    )
    assert scrub_secrets(scrubbed) == (scrubbed, {})


@parametrize(
    "text",
    [
        *text_lines("""
        git@github.com:owner/name.git
        [closure@main.rs:1:46]
        npm install pkg@1.2.3
        let token = parser.next_token_after_whitespace();
        token: syntax::parse::token::Token
        password: ********
        api_key = your-api-key-goes-here-0000
        sk-estimator-doc-link-container-id
        a commit 0123456789abcdef0123456789abcdef01234567
        @property def x
        Authorization: required for every request
        http://localhost:8080/path@2
        the bearer acknowledges
        password: String,
        password = get_password(user)
        login(user=user, password=settings.PASSWORD)
        DB_PASSWORD=${DB_PASSWORD}
        DB_PASSWORD=<your password>
        PASS: minisketch/test
        test run-pass: enum-dispatch.rs ... ok
        PWD=/home/user/src
        the password is required
        Cookie: session=...
        Cookie: lang=en; consent=1
        configure --disable-rpass --python=/usr/bin/python2
        https://play.example/?code=fn%20main%28%29%20%7B%0A%20let%20x1
        password_hash: argon2id
        {"password": "Passwort"}
        postgres://app:${DB_PASSWORD}@db/app
    """),
        f"cache-key: linux-{'0123456789abcdef' * 2}",
        *text_lines(r"""
        test password::verifies_hash ... ok
        docker run -u 1000:1000 image
        密码：错误
        密码不正确
        Passwort: falsch
        пароль: не принимается
        mot de passe : requis
        | password | string |
        | user | password |\n|---|---|\n| a | b |
        | password | role |\n|---|---|
        **Password:** required
        AUTH PLAIN is offered
        wandb login fails on startup
        ConvertTo-SecureString $password -AsPlainText
        <b>{someComponentName}</b>
        mfa.enabled=true
        SECRET_KEY = os.environ['SECRET_KEY']
        localhost:5432:refused
        ключ: значение
        execute_pass (pass=0x1761680) at
        KeyUsage: x509.KeyUsageKey2Encipherment
        eyJ starts\nof_a_very_long_identifier_in_code_12
        mongodb://<user>:<password>@localhost:27017
        npm install org/pkg@1.2.3:80
        image:tag@sha256:12ab
        my key is missing
        user root\npass through it
        the api key is your-api-key-goes-here-0000
        set -x PASSWORD $argv
    """),
        'PASSWORD = "#{password}"',
        "a:b@c",
        "at 12:30@host:80",
        "password: &default",
        "token: !!str",
        "connect to a/b@c",
        *ORDINARY_NAMES.strip().splitlines(),
    ],
)
def test_other_texts_stay(text):
    assert scrub_secrets(text) == (text, {})


TOKEN = f"ghp_{BODY}"


@parametrize(
    "text, left",
    [
        *values(
            r"""
                password=&quot;hunter2!&quot; | password="[secret]"
                &lt;password&gt;hunter2&lt;/password&gt; | <password>[secret]</password>
                next%3Fuser%3Dann%26password%3Dhunter2 | next?user=ann&password=[secret]
                password\u003d\u0022hunter2\u0022 | password="[secret]"
                "ｐａｓｓｗｏｒｄ：\u3000ｈｕｎｔｅｒ２" | password： [secret]
                "a&amp;b %3D ＃１\npassword: hunter2" | "a&amp;b %3D ＃１\npassword: [secret]"
            """,
        ),
        (f"{TOKEN[:9]}\u200b{TOKEN[9:30]}\u00ad{TOKEN[30:]}", "[secret]"),
        (f"ghp_**{TOKEN[4:]}**", "[secret]**"),
    ],
)
def test_encoded_secrets_are_replaced(text, left):
    assert scrub_secrets(text)[0] == left


@parametrize(
    "text", [f"AKIA{'ABCD2345' * 2},{BODY}+/ab", f"AKIA{'ABCD2345' * 2} / {BODY}+/ab"]
)
def test_a_secret_beside_its_id_is_replaced(text):
    assert BODY not in scrub_secrets(text)[0]


def test_the_card_lists_every_kind():
    card = gis_card(
        {"splits": {}, "repository_count": 0, "relations": {}}, {"data": {}}
    )
    assert [what for what in KINDS.values() if what not in card] == []


def test_a_rejected_value_does_not_hide_the_next_one():
    scrubbed, _ = scrub_secrets('password: "password"\npassword: "hunter2"')
    assert scrubbed == 'password: "password"\npassword: "[secret]"'


@parametrize(
    "unit",
    [
        *text_lines(r"""
        password
        key-
        eyJ
        -----BEGIN PRIVATE KEY-----
        a@b.
        Cookie: a=b;
        密码：
        | password |
        eyJabcdefghijklmnop\nabcdefghijklmnopqrstuvwxyz\n
        SECRET_KEY='
        --token-name
        <td>password</td><td>
        clé d'api
        login(key="
        a:5432:
        abcd\n
        user a\n
        "password": {
        a:b@c:
        &quot;
        MIIEpAIBAAKCAQEA
        AKIA
        password: <<A\n
    """),
        "пароль: ",
        "AUTH PLAIN ",
        "wandb login -a ",
        "my api ",
        "set -x ",
        "sqlplus ",
        "ＡＢ\u200b",
        "0123456789abcdef" * 2 + "\n",
    ],
)
def test_a_hostile_text_takes_linear_time(unit):
    """Beginnings of many patterns; `benchmarks/hostile_texts.py` tries thousands."""
    assert_linear(scrub_secrets, repeated(unit))


def test_planted_credentials_are_replaced_and_similar_texts_stay():
    path = ROOT / "benchmarks" / "planted_secrets.py"
    spec = importlib.util.spec_from_file_location("planted_secrets", path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules["planted_secrets"] = planted = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(planted)
    replaced = defaultdict(list)
    for case in planted.plant(seed=1, per_kind=60):
        replaced[case.kind].append(case.secret not in scrub_secrets(case.text)[0])
    shares = {kind: sum(results) / len(results) for kind, results in replaced.items()}
    assert shares.pop("none") <= 0.005
    assert shares.keys() == KINDS.keys()
    least = dict.fromkeys(KINDS, 0.9) | {"secret_password": 0.85}
    assert {kind: share for kind, share in shares.items() if share < least[kind]} == {}
